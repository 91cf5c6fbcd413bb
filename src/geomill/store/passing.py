"""Which errors of the database pass by themselves: the predicate that every process uses.

An error passes when the same statement may well succeed a moment later, and nothing is wrong with what was written.
Such an error is waited out and tried again. It never ends a process, fails a task or stops a job.
"""

from __future__ import annotations

import psycopg

from geomill.errors import DatabaseUnreachable
from geomill.store.replanning import has_changed_plan

_CLASSES = (
    "08",  # the connection failed
    "40",  # serialisation, deadlock
    "53",  # no connection, no disk, no memory left
    "57",  # shut down, starting up, cancelled, closed because it was idle
    "58",  # the server's system failed, as by an I/O error
)
_STATES = frozenset(
    {
        "25006",  # read-only
        "25P03",  # was idle in a transaction for too long
        "25P04",  # the transaction took too long
        "26000",  # a prepared statement is gone, as behind a pooler
        "55006",  # an object is in use
        "55P03",  # no lock was granted in time
    }
)
_SESSION_IS_WELL = ("40", "53", "55", "57014")
"""Conflicts, locks, lack of room, and statements that were cancelled: the session is as good as before."""


def passes(error: BaseException) -> bool:
    """Return whether to wait and try again. Lost connections carry no SQLSTATE."""
    if isinstance(error, DatabaseUnreachable):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state in _STATES or state.startswith(_CLASSES) or has_changed_plan(error)


def spoils_session(error: BaseException) -> bool:
    """Return whether to try again on a new session. An open session may not notice a changed setting of the server,
    such as read-only; and a statement that was prepared before a migration fails for as long as its session lasts."""
    if not passes(error):
        return False
    state = getattr(error, "sqlstate", None)
    return state is None or not state.startswith(_SESSION_IS_WELL)
