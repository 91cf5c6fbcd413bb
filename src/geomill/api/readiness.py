"""Whether jobs that are submitted now will run."""

from __future__ import annotations

import logging
import time

import psycopg

from geomill.errors import GeomillError
from geomill.store import jobs, metrics, requests
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.presence import lacking

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
RECHECK_SECONDS = 5.0
"""How long a schema counts as wrong after it was found so."""
SOUND_SECONDS = 15.0
"""How long a schema counts as right: comparing it takes some 20 ms, and somebody may ask each second."""
NOBODY = "readiness"
"""No job and no request has this id."""
ROLES = ("orchestrator", "worker")


class Readiness:
    def __init__(self, pool: Pool, sound_seconds: float = SOUND_SECONDS) -> None:
        self._pool, self._sound_seconds = pool, sound_seconds
        self._compare_at = float("-inf")
        self._schema: str | None = None

    async def reasons(self) -> list[str]:
        """Why not; nothing when it is ready."""
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                if problem := await self._schema_problem(conn):
                    return [problem]
                await _rehearse(conn)
                alive = {one.role for one in await metrics.instances(conn) if one.alive}
        except psycopg.Error as error:
            if passes(error):
                return ["the database does not answer"]
            self._compare_at = float("-inf")
            log.warning("the database refuses what requests need: %s", error)
            return [f"the database refuses what requests need (SQLSTATE {error.sqlstate}); run 'geomill doctor'"]
        return [f"no {role} is alive" for role in ROLES if role not in alive]

    async def _schema_problem(self, conn: Connection) -> str | None:
        if time.monotonic() >= self._compare_at:
            self._schema = await _compare(conn)
            self._compare_at = time.monotonic() + (RECHECK_SECONDS if self._schema else self._sound_seconds)
        return self._schema


async def _rehearse(conn: Connection) -> None:
    """What requests do, with the same statements, prepared as theirs are."""
    await jobs.find(conn, NOBODY)
    await requests.by_idempotency_key(conn, NOBODY, NOBODY)


async def _compare(conn: Connection) -> str | None:
    try:
        steps = await lacking(conn)
    except GeomillError as error:
        return error.message
    return f"the schema is not up to date: {steps[0]}; run 'geomill db migrate'" if steps else None
