"""The child's side of a child process.

The main thread runs handlers, one after the other. A second thread listens to the worker. A third ends the process if
the worker has not renewed the task in time, which happens when the worker is frozen.

Handlers run in the main thread, because libraries expect it, and without an event loop, because a handler may need its
own. Progress, checkpoints and log lines go to the worker, which writes them to the database. The child uses the
database only for data.
"""

from __future__ import annotations

import faulthandler
import itertools
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from geomill.domain.engine.message import TaskMessage
from geomill.errors import SettingsError, UnavailableError
from geomill.sdk.code_version import code_versions
from geomill.sdk.context import HandlerContext
from geomill.sdk.database import DatabaseAccess
from geomill.sdk.execution import execute_here
from geomill.sdk.registry import Registry, handlers_in
from geomill.storage import Storage, StorageRecipe
from geomill.worker.children import frames
from geomill.worker.children.clock import clock
from geomill.worker.children.frames import Frame
from geomill.worker.children.limits import die_with, leave_network, limit_memory
from geomill.worker.context import checkpoint_text, make_context, services
from geomill.worker.tasklog import TaskLogger

PROGRESS_SECONDS = 0.05
WATCH_SECONDS = 0.25
QUIET = logging.getLogger("geomill.handler")


@dataclass
class TaskOrder:
    """A task to run."""

    ticket: int
    message: TaskMessage
    checkpoint: tuple[str, dict[str, Any]] | None
    cancelled: bool = False


class WorkerLine:
    """The connection to the worker. A handler may use it from several threads: frames are sent whole and in order."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, kind: str, **fields: Any) -> None:
        data = frames.encode(kind, **fields)
        try:
            with self._lock:
                self._sock.sendall(data)
        except OSError:  # the worker is gone, and nobody needs the result
            _end_at_once()


class ChildReporter:
    """The `Reporter` of one task. Progress is sent at most twenty times a second; the latest is always sent."""

    def __init__(self, line: WorkerLine) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._pending: tuple[float, str] | None = None
        self._timer: threading.Timer | None = None

    def progress(self, fraction: float, message: str) -> None:
        with self._lock:
            self._pending = (fraction, message)
            if self._timer is None:
                self._flush()
                self._timer = threading.Timer(PROGRESS_SECONDS, self._later)
                self._timer.daemon = True
                self._timer.start()

    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None:
        self._line.send("checkpoint", phase=phase, data=checkpoint_text(phase, data))

    def limit(self, seconds: float | None, message: str) -> None:
        self._line.send("limit", seconds=seconds, message=message)

    def close(self) -> None:
        with self._lock:
            if self._timer:
                self._timer.cancel()
            self._flush()

    def _later(self) -> None:
        with self._lock:
            self._timer = None
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            fraction, message = self._pending
            self._pending = None
            self._line.send("progress", fraction=fraction, message=message)


class Questions:
    """Questions of a handler to the worker, which has a database session. One at a time; the asking thread waits."""

    def __init__(self, line: WorkerLine) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.answers: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def page(self, node_id: str, after: int, having: str) -> str:
        with self._lock:
            number = next(self._numbers)
            self._line.send("ask", number=number, node_id=node_id, after=after, having=having)
            while (answer := self.answers.get())["number"] != number:
                pass  # an answer to a thread that is gone
        if answer.get("error"):
            raise UnavailableError(answer["error"])
        return str(answer["page"])


class Listener:
    """Listens to the worker while a handler runs."""

    def __init__(self, sock: socket.socket, questions: Questions) -> None:
        self._sock = sock
        self._questions = questions
        self._latest: TaskOrder | None = None
        self.orders: queue.SimpleQueue[TaskOrder | None] = queue.SimpleQueue()
        self.busy = False
        self.until = float("inf")
        """When other workers may begin the task, by `clock()`."""

    def run(self) -> None:
        while frame := frames.receive(self._sock):
            if frame["kind"] == "run":
                self._latest = _order(frame)
                self.until = float("inf")
                self.orders.put(self._latest)
            elif frame["kind"] == "answer":
                self._questions.answers.put(frame)
            elif frame["kind"] == "until":
                self.until = frame["until"]
            elif frame["kind"] == "cancel" and self._latest and self._latest.ticket == frame["ticket"]:
                self._latest.cancelled = True
        if self.busy:
            _end_at_once()
        self.orders.put(None)

    def watch(self) -> None:
        while True:
            time.sleep(WATCH_SECONDS)
            if self.busy and clock() >= self.until:
                _end_at_once()


def main(descriptor: int, parent: int, *, offline: bool) -> None:
    os.umask(0o077)
    is_offline = offline and leave_network()
    die_with(parent)
    faulthandler.enable(all_threads=False)
    QUIET.propagate = False  # the worker logs the lines
    QUIET.addHandler(logging.NullHandler())
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)
    setup = frames.receive(sock)
    if setup is None:
        return
    limit_memory(setup["memory_mb"])
    handlers, storage = _load(setup), Storage(StorageRecipe.from_json(setup["storage"]))
    versions = code_versions(handlers)  # now, while the files are still those that were imported
    database = DatabaseAccess(setup["database"])
    line = WorkerLine(sock)
    questions = Questions(line)
    listener = Listener(sock, questions)
    threading.Thread(target=listener.run, name="listener", daemon=True).start()
    threading.Thread(target=listener.watch, name="watch", daemon=True).start()
    process_services = services(storage=storage, database=database, outcome_pages=questions.page)
    line.send("ready", offline=is_offline, versions=versions)
    while order := listener.orders.get():
        listener.busy = True
        _serve(line, handlers, order, process_services)
        listener.busy = False


def _load(setup: Frame) -> Registry:
    handlers = handlers_in(setup["modules"])
    if missing := sorted(set(setup["names"]) - set(handlers)):
        raise SettingsError(
            f"the child process cannot find the handler '{missing[0]}'",
            remedy="define it at the top of a module that can be imported",
        )
    return handlers


def _order(frame: Frame) -> TaskOrder:
    saved = frame["checkpoint"]
    message = TaskMessage.model_validate(frame["message"])
    return TaskOrder(frame["ticket"], message, (saved[0], saved[1]) if saved else None)


def _serve(line: WorkerLine, handlers: Registry, order: TaskOrder, process_services: Mapping[str, Any]) -> None:
    reporter = ChildReporter(line)
    logger = TaskLogger(QUIET, lambda level, text: line.send("log", level=level, text=text))

    def context(params: Any) -> HandlerContext[Any]:
        return make_context(
            order.message,
            order.checkpoint,
            params,
            logger,
            reporter,
            lambda: order.cancelled,
            process_services,
        )

    ended = execute_here(handlers[order.message.handler], order.message.handler_params, context)
    reporter.close()
    _flush_output()
    line.send("ended", **asdict(replace(ended, output=None)))  # the text contains the output


def _flush_output() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _end_at_once() -> None:
    """Kill this process and all that the handler has started, which are in its process group."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
