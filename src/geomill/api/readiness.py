"""Whether jobs that are submitted now will run."""

from __future__ import annotations

import time

import psycopg

from geomill.errors import GeomillError
from geomill.store import attendance, metrics
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.presence import lacking

PATIENCE_SECONDS = 2.0
RECHECK_SECONDS = 5.0
ROLES = ("orchestrator", "worker")


class Readiness:
    """The schema is compared until it is found right, and then no more: comparing costs more than a look should."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._checked = float("-inf")
        self._schema: str | None = "the schema has not been looked at"

    async def reasons(self) -> list[str]:
        """Why not; nothing when it is ready."""
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                if problem := await self._schema_problem(conn):
                    return [problem]
                alive = {one.role for one in await metrics.instances(conn) if one.alive}
                unserved = await attendance.unserved(conn)
        except psycopg.Error as error:
            if not passes(error):
                raise
            return ["the database does not answer"]
        return [
            *(f"no {role} is alive" for role in ROLES if role not in alive),
            *(queue.reason for queue in unserved),
        ]

    async def _schema_problem(self, conn: Connection) -> str | None:
        if self._schema and time.monotonic() - self._checked > RECHECK_SECONDS:
            self._schema = await _compare(conn)
            self._checked = time.monotonic()
        return self._schema


async def _compare(conn: Connection) -> str | None:
    try:
        steps = await lacking(conn)
    except GeomillError as error:
        return error.message
    return f"the schema is not up to date: {steps[0]}; run 'geomill db migrate'" if steps else None
