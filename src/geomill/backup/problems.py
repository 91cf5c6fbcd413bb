"""Translates errors of the database during a backup or a restoration to ours, with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from geomill.errors import DatabaseUnfit, UnavailableError


@contextmanager
def translated(doing: str) -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnfit(
            f"the role may not {doing}: {error.diag.message_primary}",
            remedy="run the command as the role that owns the databases",
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        reason = error.diag.message_primary or "the connection was lost"
        raise UnavailableError(
            f"the database did not let us {doing}: {reason}",
            remedy="run the command again; a backup needs an empty place",
        ) from None
