"""A connection whose prepared statements survive a migration.

PostgreSQL plans a prepared statement again when one of its tables has changed, but refuses if its result would have
another type, as after a wider `varchar`. It refuses for as long as the session lives. So the session's plans are
dropped, and the statement is run once more. Inside a transaction that is impossible: the transaction is lost, and the
caller begins it again. Psycopg drops the plans by itself when it rolls back.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.abc import Params, Query
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow

from geomill.sql import queries

log = logging.getLogger(__name__)

_REFUSED_BY = "RevalidateCachedQuery"
"""The function in PostgreSQL that reports the error. Messages cannot be compared: they are translated."""


def has_changed_plan(error: BaseException) -> bool:
    return isinstance(error, psycopg.errors.FeatureNotSupported) and error.diag.source_function == _REFUSED_BY


async def drop_plans(conn: AsyncConnection[Any]) -> None:
    """Drop all plans of the session. Psycopg notices it, and prepares its statements again."""
    await conn.execute(queries("migration").drop_plans, prepare=False)


class ReplanningConnection(AsyncConnection[DictRow]):
    """Runs a statement again if its plan was refused."""

    async def execute(
        self, query: Query, params: Params | None = None, *, prepare: bool | None = None, binary: bool = False
    ) -> AsyncCursor[DictRow]:
        """Replace psycopg's own method, rather than wrap it, because every hot statement calls it."""
        try:
            return await self.cursor(binary=binary).execute(query, params, prepare=prepare)  # type: ignore[arg-type]  # no templates
        except psycopg.errors.FeatureNotSupported as error:
            alone = self.info.transaction_status is TransactionStatus.IDLE
            if not (alone and has_changed_plan(error)):
                raise
        log.info("the schema has changed: the session's plans are made again")
        await drop_plans(self)
        return await self.cursor(binary=binary).execute(query, params, prepare=prepare)  # type: ignore[arg-type]  # no templates
