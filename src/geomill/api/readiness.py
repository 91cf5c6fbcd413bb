"""Readiness: whether jobs submitted now will run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import psycopg

from geomill.api.schema_watch import SOUND_SECONDS, SchemaWatch
from geomill.store import attendance, jobs, metrics, requests
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.presence import lacking

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
NOBODY = "readiness"
"""An id that no job and no request has."""
ROLES = ("orchestrator", "worker")


@dataclass(frozen=True, slots=True)
class ReadyState:
    obstacles: list[str]
    """Reasons why no job will run. Empty if the platform is ready."""
    waits: list[str] = field(default_factory=list)
    """Queues that no process serves. One such queue must not remove a gateway from its load balancer."""

    @property
    def reasons(self) -> list[str]:
        return [*self.obstacles, *self.waits]


class Readiness:
    def __init__(self, pool: Pool, sound_seconds: float = SOUND_SECONDS) -> None:
        self._pool, self._schema = pool, SchemaWatch(lacking, sound_seconds)

    async def look(self) -> ReadyState:
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                if problem := await self._schema.problem(conn):
                    return ReadyState([problem])
                await _rehearse(conn)
                alive = {instance.role for instance in await metrics.instances(conn) if instance.alive}
                unserved = await attendance.unserved(conn)
        except psycopg.Error as error:
            self._schema.doubt()
            return ReadyState([refusal(error)])
        obstacles = [f"no {role} is alive" for role in ROLES if role not in alive]
        return ReadyState(obstacles, [queue.reason for queue in unserved])


def refusal(error: psycopg.Error) -> str:
    """Return the reason without details, because everybody may read it. The log has the details."""
    if passes(error):
        return "the database does not answer"
    log.warning("the database refuses what requests need: %s", error)
    return f"the database refuses what requests need (SQLSTATE {error.sqlstate}); run 'geomill doctor'"


async def _rehearse(conn: Connection) -> None:
    """Run statements that requests use, prepared in the same way."""
    await jobs.find(conn, NOBODY)
    await requests.by_idempotency_key(conn, NOBODY, NOBODY)
