"""Sessions of the database for work in child processes, and what its errors mean there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
from psycopg import errors
from psycopg.rows import DictRow, dict_row

from geomill.datasets.refusals import refused
from geomill.errors import DatabaseUnreachable
from geomill.sdk import DatabaseAccess
from geomill.sql import queries

Connection = psycopg.Connection[DictRow]
Sessions = Callable[[], AbstractContextManager[Connection]]
"""Opens one."""


@contextmanager
def session(access: DatabaseAccess) -> Iterator[Connection]:
    """In autocommit mode: transactions are begun where they are meant. It ends with the block."""
    try:
        with psycopg.connect(
            access.url,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=10,
            application_name="geomill vectors",
        ) as conn:
            conn.execute(queries("vectors").prepare_session)
            yield conn
    except (errors.ProgramLimitExceeded, errors.TooManyColumns) as error:
        raise refused(
            "too_many_columns", "the rows do not fit into a table of PostgreSQL: leave out columns"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise refused("database_denied", "the database does not let us load: the log says why") from error
    except (psycopg.OperationalError, errors.ReadOnlySqlTransaction) as error:
        raise DatabaseUnreachable("the database did not do its part", remedy="try again") from error
