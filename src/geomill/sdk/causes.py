"""Recognises failures that the handler did not cause: a full disk or an unreachable database.

Such failures are temporary and have their own codes. `RetryPolicy` retries them for minutes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from geomill.domain.engine.retry import DATABASE_AWAY, NO_SPACE

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_TEXTS = (*(os.strerror(number) for number in _FULL), "Write error at")
"""The system's messages, and the only one that libtiff passes on through GDAL."""
_DISK_FULL = "53100"
_AWAY = ("08", "53", "57P", "58", "25006")
"""Prefixes of SQLSTATE: lost connections, no resources, shutdown, system failures, read-only."""
DEEPEST = 10


def passing_code(error: BaseException) -> str | None:
    """Return `no_space` or `database_unreachable` if that is the cause of the error, else None."""
    for cause in _causes(error):
        if _is_full(cause):
            return NO_SPACE
        if _is_away(cause):
            return DATABASE_AWAY
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(DEEPEST):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_full(error: BaseException) -> bool:
    """Whether a disk is full. C libraries pass on the system's message at best, never its error number."""
    if getattr(error, "sqlstate", None) == _DISK_FULL or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    return any(text in str(error) for text in _FULL_TEXTS)


def _is_away(error: BaseException) -> bool:
    """Whether the database is unreachable. Errors of psycopg, which is not imported here, have the attribute
    `sqlstate`. It is None for a lost connection."""
    if not hasattr(error, "sqlstate"):
        return False
    if error.sqlstate is None:
        return any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    return str(error.sqlstate).startswith(_AWAY)
