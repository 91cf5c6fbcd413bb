"""systemd hears that a process is ready, and hears nothing more once its event loop hangs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.telemetry.service_manager import signs_of_life


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.setblocking(False)
        yield listener


def heard(listener: socket.socket) -> list[str]:
    texts = []
    while True:
        try:
            texts.append(listener.recv(100).decode())
        except BlockingIOError:
            return texts


def environ(listener: socket.socket, seconds: float = 0.0) -> dict[str, str]:
    watchdog = {"WATCHDOG_USEC": str(int(seconds * 1e6))} if seconds else {}
    return {"NOTIFY_SOCKET": listener.getsockname(), **watchdog}


async def test_without_systemd_nothing_happens() -> None:
    async with signs_of_life({}):
        assert len(asyncio.all_tasks()) == 1


async def test_ready_and_stopping_are_told(listener: socket.socket) -> None:
    async with signs_of_life(environ(listener)):
        await asyncio.sleep(0)
        assert heard(listener) == ["READY=1"]
    assert heard(listener) == ["STOPPING=1"]


async def test_a_running_loop_gives_signs_and_a_hanging_one_none(listener: socket.socket) -> None:
    async with signs_of_life(environ(listener, seconds=0.06)):
        await asyncio.sleep(0.2)
        assert heard(listener).count("WATCHDOG=1") >= 3
        time.sleep(0.2)  # noqa: ASYNC251  the loop hangs: that is the test
        assert heard(listener) == []


async def test_an_abstract_address_works() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(b"\0geomill-test-" + str(time.monotonic_ns()).encode())
        listener.setblocking(False)
        async with signs_of_life({"NOTIFY_SOCKET": "@" + listener.getsockname()[1:].decode()}):
            assert heard(listener) == ["READY=1"]
