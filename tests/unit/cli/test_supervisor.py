"""Processes that are kept running."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable

import pytest

from geomill.cli.supervisor import Program, Supervisor, pause_after


@pytest.fixture(autouse=True)
def plain_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments are Python code instead of a command of ours."""
    start = asyncio.create_subprocess_exec

    async def replaced(*arguments: str, **options: object) -> object:
        assert arguments[1] == "-P"  # nothing is imported from the working folder
        return await start(sys.executable, "-c", arguments[-1], **options)

    monkeypatch.setattr("geomill.cli.supervisor.asyncio.create_subprocess_exec", replaced)


def supervised(code: str, grace: float = 5.0) -> tuple[Supervisor, list[str]]:
    lines: list[str] = []
    program = Program("one", (code,))
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return Supervisor([program], lambda: environ, lambda name, line: lines.append(line), grace), lines


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not true():  # noqa: ASYNC110  it happens in another process
            await asyncio.sleep(0.01)


def test_pauses_grow_and_have_an_end() -> None:
    assert [pause_after(failures) for failures in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_after(100) == 30.0


async def test_what_dies_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.cli.supervisor.SHORTEST_PAUSE", 0.01)
    supervisor, lines = supervised("import os; print('born'); os._exit(3)")
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    await eventually(lambda: lines.count("born") >= 3)
    stop.set()
    await running


async def test_a_killed_process_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.cli.supervisor.SHORTEST_PAUSE", 0.01)
    supervisor, lines = supervised("import os, time; print(os.getpid()); time.sleep(60)")
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    await eventually(lambda: len(lines) == 1)
    os.kill(int(lines[0]), signal.SIGKILL)
    await eventually(lambda: len(lines) == 2)
    stop.set()
    await running
    assert supervisor.killed == 0


async def test_who_does_not_leave_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(60)"
    supervisor, lines = supervised(code, grace=0.2)
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    await eventually(lambda: lines == ["deaf"])
    stop.set()
    async with asyncio.timeout(10):
        await running
    assert supervisor.killed == 1


async def test_a_second_signal_ends_the_patience() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(60)"
    supervisor, lines = supervised(code, grace=60.0)
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    await eventually(lambda: lines == ["deaf"])
    stop.set()
    supervisor.hurry()
    async with asyncio.timeout(10):
        await running


async def test_a_line_without_end_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.cli.supervisor.LONGEST_LINE", 1000)
    supervisor, lines = supervised("import time; print('x' * 100_000); print('after'); time.sleep(60)")
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    await eventually(lambda: "after" in lines)
    stop.set()
    await running
