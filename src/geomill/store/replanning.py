"""Prepared statements outlive a migration.

PostgreSQL plans a prepared statement again when a table of it has changed, but refuses to if its result would have
another type, as after a wider `varchar`. It refuses for as long as the session lives. So the session's plans are
dropped, and the statement is run once more. Inside a transaction that cannot be done: the transaction is lost, and
whoever began it begins again. Psycopg drops the plans by itself when it rolls back.
"""

from __future__ import annotations

import logging
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import Row

from geomill.sql import queries

log = logging.getLogger(__name__)

_REFUSED_BY = "RevalidateCachedQuery"
"""The place in PostgreSQL's source: its messages come in the language of the server."""


def has_changed_plan(error: BaseException) -> bool:
    return isinstance(error, psycopg.errors.FeatureNotSupported) and error.diag.source_function == _REFUSED_BY


async def drop_plans(conn: AsyncConnection[Any]) -> None:
    """Psycopg sees it, and prepares again what it had prepared."""
    await conn.execute(queries("migration").drop_plans, prepare=False)


class ReplanningCursor(AsyncCursor[Row]):
    """Runs a statement again whose plan was refused."""

    async def execute(self, *arguments: Any, **options: Any) -> Self:
        try:
            return await super().execute(*arguments, **options)
        except psycopg.errors.FeatureNotSupported as error:
            alone = self.connection.info.transaction_status is TransactionStatus.IDLE
            if not (alone and has_changed_plan(error)):
                raise
        log.info("the schema has changed: the session's plans are made again")
        await drop_plans(self.connection)
        return await super().execute(*arguments, **options)
