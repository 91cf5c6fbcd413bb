"""Supervises processes: starts them, passes on their output, restarts those that die, and stops them in order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from geomill.errors import UnavailableError

log = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
LONG_ENOUGH = 30.0
"""A process that ran this long did not fail at its start, so the next pause is short again."""

LONGEST_LINE = 1 << 20
SWALLOW_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run. `kind` selects its environment, see `environment`."""

    name: str
    arguments: tuple[str, ...]
    kind: str = ""


def pause_after(failures: int) -> float:
    return min(SHORTEST_PAUSE * 2.0 ** (max(failures, 1) - 1), LONGEST_PAUSE)


class Supervisor:
    """Runs programs. `environ` is called at each start of a program, `say` with each line that a process prints."""

    def __init__(
        self,
        programs: Sequence[Program],
        environ: Callable[[Program], Mapping[str, str]],
        say: Callable[[str, str], None],
        grace_seconds: float,
    ) -> None:
        self._programs, self._environ, self._say = programs, environ, say
        self._grace_seconds = grace_seconds
        self._running: dict[str, Process] = {}
        self._restarting: set[str] = set()
        """Names of the programs that end because they were asked to, to be started again at once."""
        self._hurry = asyncio.Event()
        self.killed = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and every process has ended."""
        async with asyncio.TaskGroup() as group:
            for program in self._programs:
                group.create_task(self._keep(program, stop), name=program.name)

    def hurry(self) -> None:
        """Kill the processes that are still stopping."""
        self._hurry.set()

    def restart(self, kinds: Collection[str] | None = None) -> None:
        """Ask the processes of these kinds, or all, to stop. Each is then started again at once."""
        for program in self._programs:
            process = self._running.get(program.name)
            if process and (kinds is None or program.kind in kinds):
                self._restarting.add(program.name)
                _signal(process, signal.SIGTERM)

    async def _keep(self, program: Program, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            begun = time.monotonic()
            outcome = await self._try_once(program, stop)
            if stop.is_set():
                return
            if program.name in self._restarting:
                self._restarting.discard(program.name)
                continue
            failures = 1 if time.monotonic() - begun >= LONG_ENOUGH else failures + 1
            pause = pause_after(failures)
            extra = {"action": "restart", "program": program.name}
            log.warning("%s %s, next start in %g s", program.name, outcome, pause, extra=extra)
            await _wait(stop, pause)

    async def _try_once(self, program: Program, stop: asyncio.Event) -> str:
        """Run the program once and return a description of its end."""
        try:
            return _describe_exit(await self._run_once(program, stop))
        except OSError as error:  # no memory, or no more processes
            return f"could not be started ({error.strerror})"
        except UnavailableError as error:  # its database is unavailable
            return f"could not be started ({error.message})"

    async def _run_once(self, program: Program, stop: asyncio.Event) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing is imported from the current folder
            "-m",
            "geomill.cli.child",
            *program.arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env=dict(self._environ(program)),
            process_group=0,
            limit=LONGEST_LINE,
        )
        self._running[program.name] = process
        pump = asyncio.create_task(self._pump(program.name, process))
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await self._end(process, ended)
        await asyncio.wait({pump}, timeout=SWALLOW_SECONDS)
        pump.cancel()
        del self._running[program.name]
        return ended.result()

    async def _end(self, process: Process, ended: asyncio.Task[int]) -> None:
        """Stop the process, then kill its group, so that no child of it remains."""
        if not ended.done():
            _signal(process, signal.SIGTERM)
            hurry = asyncio.create_task(self._hurry.wait())
            await asyncio.wait({ended, hurry}, timeout=self._grace_seconds, return_when=asyncio.FIRST_COMPLETED)
            hurry.cancel()
            self.killed += not ended.done()
        _kill_group(process.pid)
        await ended

    async def _pump(self, name: str, process: Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # a line above LONGEST_LINE is dropped
                continue
            if not line:
                return
            self._say(name, line.decode("utf-8", "replace").rstrip("\n"))


def _signal(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        process.send_signal(number)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _describe_exit(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
