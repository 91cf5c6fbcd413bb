"""Database sessions for child processes, and the translation of their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
from psycopg import errors
from psycopg.rows import DictRow, dict_row

from geomill.datasets.refusals import refused
from geomill.errors import DatabaseUnreachable, IdentityUnavailable
from geomill.identity.passwords import password_of
from geomill.sdk import DatabaseAccess
from geomill.sql import queries

Connection = psycopg.Connection[DictRow]
Sessions = Callable[[], AbstractContextManager[Connection]]
"""Opens a session."""


@contextmanager
def session(access: DatabaseAccess) -> Iterator[Connection]:
    """Open a session in autocommit mode for the block. Transactions are started explicitly."""
    try:
        with psycopg.connect(
            access.url,
            password=password_of(access.url),
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=10,
            application_name="geomill vectors",
        ) as conn:
            conn.execute(queries("vectors").prepare_session)
            yield conn
    except (errors.ProgramLimitExceeded, errors.TooManyColumns) as error:
        raise refused("too_many_columns", "the rows do not fit into a table of PostgreSQL: remove columns") from error
    except errors.InsufficientPrivilege as error:
        raise refused("database_denied", "the database role may not load features: see the worker's log") from error
    except (psycopg.OperationalError, errors.ReadOnlySqlTransaction, IdentityUnavailable) as error:
        raise DatabaseUnreachable("the database did not complete the request", remedy="try again") from error
