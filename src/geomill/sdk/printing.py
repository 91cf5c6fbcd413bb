"""Leads what a handler prints to the log of its task.

Several handlers run in one process, so standard output is replaced by one object that asks which task is running. Code
outside of handlers prints as before. Libraries in C do not print through Python; what they write stays in the log of
the process.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from geomill.domain.engine.log import LONGEST_LINE

Logger = logging.Logger | logging.LoggerAdapter[logging.Logger]


_LOCK = threading.Lock()
"""One for all tasks: most of them print nothing, and a lock of its own would cost each of them."""


class PrintedLines:
    """The output of one task, line by line. A line without an end is kept until it is long."""

    __slots__ = ("_logger", "_rest", "_token")

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._rest = ""

    def write(self, text: str) -> None:
        with _LOCK:
            *lines, self._rest = (self._rest + text).split("\n")
            if len(self._rest) >= LONGEST_LINE:
                lines, self._rest = [*lines, self._rest], ""
        self._log(lines)

    def close(self) -> None:
        if self._rest:
            with _LOCK:
                rest, self._rest = self._rest, ""
            self._log([rest])

    def _log(self, lines: list[str]) -> None:
        for line in lines:
            if line.strip():
                self._logger.info("%s", line.rstrip())


_current: ContextVar[PrintedLines | None] = ContextVar("printed lines of the current task", default=None)


class _Output(io.TextIOBase):
    """Standard output while handlers run: the task that prints decides where the text goes."""

    def __init__(self, behind: TextIO, alone: PrintedLines | None = None) -> None:
        self.behind, self.alone = behind, alone

    def write(self, text: str) -> int:
        lines = self.alone or _current.get()
        if lines is None:
            return self.behind.write(text)
        lines.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)  # such as `buffer`, which some libraries use

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has an attribute
        return self.behind.encoding

    def flush(self) -> None:
        self.behind.flush()

    def close(self) -> None:
        """Leave the output behind open: it is not ours, and may be closed before this object is gone."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.behind.fileno()

    def isatty(self) -> bool:
        return False


class printed_to(PrintedLines):  # noqa: N801  it is used as a function
    """Leads what this task prints to its logger, also from the thread that `asyncio.to_thread` runs it in:
    `with printed_to(logger): …`. A class, because every task passes here and a generator takes longer."""

    __slots__ = ()

    def __enter__(self) -> None:
        if type(sys.stdout) is not _Output:
            sys.stdout = _Output(sys.stdout)
        self._token = _current.set(self)

    def __exit__(self, *_exception: object) -> None:
        _current.reset(self._token)
        self.close()


@contextmanager
def all_printed_to(logger: Logger) -> Iterator[None]:
    """Lead everything that this process prints to the logger of its only task, whichever thread prints it."""
    behind, lines = sys.stdout, PrintedLines(logger)
    sys.stdout = _Output(behind, lines)
    try:
        yield
    finally:
        sys.stdout = behind
        lines.close()
