"""The worker's side of a child process: starts it, gives it tasks, listens to it and ends it.

A child is a new interpreter, not a fork of this process, which has threads. It has its own session, so that Ctrl-C
reaches only the worker, and a kill reaches all processes that the handler has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import signal
import socket
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.log import LONGEST_LINE
from geomill.domain.engine.message import TaskMessage
from geomill.errors import UnavailableError
from geomill.sdk.execution import Ended, failed
from geomill.storage import StorageRecipe
from geomill.store.checkpoints import Saved
from geomill.worker.children import frames
from geomill.worker.children.frames import Frame
from geomill.worker.children.limits import memory_of
from geomill.worker.children.surroundings import Surroundings, Wishes, make_private, scratch_folder, surroundings

output_log = logging.getLogger("geomill.handler.output")

START_SECONDS = 120.0
STOP_SECONDS = 1.0
TAIL_LINES, TAIL_WIDTH, TAIL_CHARACTERS = 20, 160, 1_600
BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from geomill.worker.children.main import main
main(int(sys.argv[2]), int(sys.argv[3]), offline=sys.argv[4] == "offline")
"""


class ChildFailed(Exception):  # noqa: N818
    """A child could not be started."""


class Ear(Protocol):
    """Receives the progress, checkpoints, log lines and questions of a handler."""

    def progress(self, fraction: float, message: str) -> None: ...
    def keep(self, phase: str, text: str) -> None: ...
    def line(self, level: int, text: str) -> None: ...
    def limit(self, seconds: float | None, message: str) -> None: ...
    async def page(self, node_id: str, after: int, having: str) -> str:
        """Return a page of the outcomes of tasks of its job. Raises `UnavailableError`."""
        ...


@dataclass(frozen=True, slots=True)
class ChildSetup:
    """The handlers that every child of a worker loads, and the resources that it may use."""

    modules: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    memory_mb: int | None = None
    storage: StorageRecipe = field(default_factory=StorageRecipe)
    database: str = field(default="", repr=False)
    wishes: Wishes = field(default_factory=Wishes)


class Child:
    """A child process, created by `start`. It runs one task at a time."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._tickets = itertools.count(1)
        self._ticket = 0
        self._until = 0.0
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._output = asyncio.create_task(self._read_output(), name=f"output of {process.pid}")
        self.tasks = 0
        self.idle_since = 0.0
        self.versions: dict[str, str] = {}
        """The code version of each handler in this process. The files may be newer than those that the worker has."""
        self.exposed = False
        """Whether it has network access that it should not have, because the system allows no network namespace."""

    @classmethod
    async def start(cls, setup: ChildSetup) -> Child:
        """Start a child and import its handlers. Raises `ChildFailed`."""
        around = surroundings(os.environ, setup.storage, setup.database, setup.wishes)
        if folder := scratch_folder(setup.storage, setup.wishes):
            make_private(folder)
        child = await cls._spawn(around)
        try:
            async with asyncio.timeout(START_SECONDS):
                await child.get_ready(setup)
            child.exposed = around.offline and not child.exposed
        except BaseException:  # the process must not stay behind
            child.kill()
            await child.stop()
            raise
        return child

    async def get_ready(self, setup: ChildSetup) -> None:
        await self._send(
            "setup",
            modules=setup.modules,
            names=setup.names,
            memory_mb=setup.memory_mb,
            storage=setup.storage.to_json(),
            database=setup.database,
        )
        ready = await frames.read(self._reader)
        self.exposed = not (ready and ready.get("offline"))
        self.versions = ready["versions"] if ready else {}
        if ready is None:
            await self._end_output()
            raise ChildFailed(f"the handler's process could not start: {self._last_words()}")

    @classmethod
    async def _spawn(cls, around: Surroundings) -> Child:
        path = [entry for entry in sys.path if entry]  # without the worker's current folder
        near, far = socket.socketpair()
        with far:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", BOOT, json.dumps(path), str(far.fileno()), str(os.getpid()),
                "offline" if around.offline else "online",
                env=dict(around.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(far.fileno(),),
                start_new_session=True,
            )  # fmt: skip
        reader, writer = await asyncio.open_unix_connection(sock=near)
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._reader.at_eof()

    def memory(self) -> int:
        return memory_of(self.pid) if self.alive else 0

    async def run(self, message: TaskMessage, checkpoint: Saved | None, ear: Ear) -> Ended:
        """Run a task and return how it ended. On cancellation the child is killed, and what it has already sent is
        still read."""
        self.tasks += 1
        self._ticket = next(self._tickets)
        self._until = 0.0
        self._tail.clear()
        try:
            body = message.model_dump(mode="json")
            await self._send("run", ticket=self._ticket, message=body, checkpoint=checkpoint)
            ended = await self._listen(ear)
        except asyncio.CancelledError:
            self.kill()
            await self._hear_out(ear)
            raise
        except ValueError:  # something else wrote to the socket
            self.kill()
            ended = None
        return ended or await self._crashed(ear)

    def tell_cancelled(self) -> None:
        if self.alive:
            self._writer.write(frames.encode("cancel", ticket=self._ticket))

    def tell_until(self, until: float) -> None:
        """Tell the child until when the worker has the task, by `clock()`. Without a later time the child then ends
        itself."""
        if self.alive and until != self._until:
            self._until = until
            self._writer.write(frames.encode("until", until=until))

    def kill(self) -> None:
        """Kill the child and all processes that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Stop the child. An idle child exits when its socket is closed; otherwise it is killed."""
        self._writer.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
        await self._process.wait()
        await self._end_output()

    async def _send(self, kind: str, **fields: object) -> None:
        with contextlib.suppress(ConnectionError):  # it died; the next read notices it
            self._writer.write(frames.encode(kind, **fields))
            await self._writer.drain()

    async def _listen(self, ear: Ear) -> Ended | None:
        while frame := await frames.read(self._reader):
            if frame["kind"] == "ask":
                await self._answer(frame, ear)
            elif ended := self._hear(frame, ear):
                return ended
        return None

    async def _answer(self, question: Frame, ear: Ear) -> None:
        """Answer a question. The handler waits for the answer, so no other frames need to be read meanwhile."""
        try:
            answer = {"page": await ear.page(question["node_id"], question["after"], question["having"])}
        except UnavailableError as error:
            answer = {"error": str(error)}
        await self._send("answer", number=question["number"], **answer)

    def _hear(self, frame: Frame, ear: Ear) -> Ended | None:
        match frame.pop("kind"):
            case "progress":
                ear.progress(frame["fraction"], frame["message"])
            case "checkpoint":
                ear.keep(frame["phase"], frame["data"])
            case "limit":
                ear.limit(frame["seconds"], frame["message"])
            case "log":
                self._tail.append(frame["text"][:TAIL_WIDTH])
                ear.line(frame["level"], frame["text"])
            case "ended":
                return Ended(**frame)
        return None

    async def _hear_out(self, ear: Ear) -> None:
        """Read the frames that were sent before the kill. A checkpoint may be among them."""
        with contextlib.suppress(TimeoutError, ValueError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._listen(ear)

    async def _crashed(self, ear: Ear) -> Ended:
        self.kill()  # processes that it started may keep its output open
        code = await self._process.wait()
        await self._end_output()
        reference, manner = new_reference(), _manner(code)
        ear.line(logging.ERROR, f"the handler's process {manner}, reference {reference}: {self._last_words()}")
        text = f"the handler's process {manner}: see the log for the reference {reference}"
        return failed(text, "crashed", retryable=True)

    def _last_words(self) -> str:
        tail = " | ".join(self._tail)[-TAIL_CHARACTERS:]
        return f"its last output: {tail}" if tail else "it had no output"

    async def _read_output(self) -> None:
        """Log what the handler and the interpreter print."""
        assert self._process.stdout is not None
        rest = b""
        while chunk := await self._process.stdout.read(1 << 14):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-LONGEST_LINE:]
            for line in lines:
                self._printed(line)
        self._printed(rest)

    def _printed(self, line: bytes) -> None:
        if text := line.decode(errors="replace").strip():
            output_log.info("%s", text[:LONGEST_LINE], extra={"child": self.pid})
            self._tail.append(text[:TAIL_WIDTH])

    async def _end_output(self) -> None:
        await asyncio.wait([self._output], timeout=STOP_SECONDS)
        self._output.cancel()
        await asyncio.gather(self._output, return_exceptions=True)
        self._writer.close()


def _manner(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", perhaps by the kernel because memory was short" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
