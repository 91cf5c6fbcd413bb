"""The logger of a handler. Its lines go to the usual logging and to a sink."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

Sink = Callable[[int, str], None]
_FORMATTER = logging.Formatter()


def clean(text: str) -> str:
    """Return the text as PostgreSQL accepts it: without NUL and without halves of surrogate pairs."""
    return text.replace("\x00", "").encode(errors="replace").decode()


class TaskLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines from INFO upwards always reach the sink, whatever level is configured."""

    def __init__(self, logger: logging.Logger, sink: Sink, extra: Mapping[str, object] | None = None) -> None:
        super().__init__(logger, extra or {})
        self._sink = sink

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        if level >= logging.INFO:
            self._sink(level, _text(self.logger, level, msg, args, kwargs.get("exc_info")))
        super().log(level, msg, *args, **kwargs)


def _text(logger: logging.Logger, level: int, msg: object, args: tuple[Any, ...], problem: Any) -> str:
    if isinstance(problem, BaseException):
        problem = (type(problem), problem, problem.__traceback__)
    elif problem and not isinstance(problem, tuple):
        problem = sys.exc_info()
    record = logger.makeRecord(logger.name, level, "", 0, msg, args, problem or None)
    try:
        return _FORMATTER.format(record)
    except (TypeError, ValueError, KeyError):  # wrong arguments are no reason to fail, as in the logging module
        return str(msg)
