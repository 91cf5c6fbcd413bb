"""Deletes the data of leftovers: revisions that failed, were cancelled or were superseded some time ago.

    lock the asset → delete the revision's folder in silver and its intermediates → record it, drop its tables → commit

A process that dies in between has recorded nothing, and another one begins again. Data that is served, public or needed
for a rollback is never a leftover (`sql/functions/is_leftover.sql`).

Weaknesses: the asset is locked while its files are deleted, so a decision about it waits for that long. If a custom
workflow fails, only its files in the library's containers, or in containers that another revision names, are found.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta

from geomill.datasets.intermediates import folder_of
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER, RASTER_CONTAINER, VECTOR_CONTAINER
from geomill.domain.assets import naming
from geomill.domain.objectname import Zone
from geomill.engine.maintenance.batches import repeat_batches
from geomill.errors import NotFoundError
from geomill.handlers.blob.places import PUBLISHED
from geomill.settings import RetentionSettings
from geomill.sql import queries
from geomill.storage import NO_STORAGE, Storage
from geomill.store import leftovers
from geomill.store.duties import Duties
from geomill.store.leftovers import KeptFor, Leftover
from geomill.store.pool import Connection, Pool

log = logging.getLogger(__name__)

CONTAINERS = (PUBLISHED, RASTER_CONTAINER, VECTOR_CONTAINER)
"""The containers that workflows of the library write to."""


@dataclass(frozen=True)
class LeftoverOptions:
    retention: KeptFor = field(default_factory=lambda: KeptFor(None, None))
    look_seconds: float = 600.0
    batch: int = 20

    @classmethod
    def of(cls, settings: RetentionSettings) -> LeftoverOptions:
        return cls(KeptFor(_days(settings.keep_failed_days), _days(settings.keep_superseded_days)))


def _days(days: float) -> timedelta | None:
    return timedelta(days=days) if days else None


@dataclass
class Leftovers:
    pool: Pool
    storage: Storage = NO_STORAGE
    options: LeftoverOptions = field(default_factory=LeftoverOptions)
    duties: Duties | None = None

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop, because it waits for the object store."""
        retention = self.options.retention
        if self.storage is NO_STORAGE or (retention.failed is None and retention.completed is None):
            await asyncio.Event().wait()
        options = self.options
        await repeat_batches(
            "leftovers", self.run_once, batch=options.batch, look_seconds=options.look_seconds, duties=self.duties
        )

    async def run_once(self) -> int:
        """Delete the data of one batch of leftovers. Returns how many there were."""
        done = 0
        async with self.pool.connection() as conn:
            for leftover in await leftovers.due(conn, self.options.retention, self.options.batch):
                done += await self._delete(conn, leftover)
        return done

    async def _delete(self, conn: Connection, leftover: Leftover) -> bool:
        async with leftovers.holding(conn, leftover, self.options.retention) as stem:
            if stem is None:
                return False
            removed = 0
            for container in await self._containers(conn, leftover):
                folder = naming.blob_prefix(stem, leftover.revision)
                removed += await self._delete_folder(container, folder)
            if leftover.job_id:
                removed += await self._delete_folder(INTERMEDIATE_CONTAINER, folder_of(leftover.job_id))
        log.info(
            "deleted the data of revision %d of %s: %d files",
            leftover.revision,
            leftover.asset_id,
            removed,
            extra={"action": "leftovers", "asset_id": leftover.asset_id},
        )
        return True

    async def _containers(self, conn: Connection, leftover: Leftover) -> list[str]:
        """Return the containers of the library and those that a revision of the asset names."""
        cursor = await conn.execute(queries("orders").containers, {"asset_id": leftover.asset_id})
        named = [row["container"] for row in await cursor.fetchall()]
        return list(dict.fromkeys((*CONTAINERS, *named)))

    async def _delete_folder(self, container: str, folder: str) -> int:
        try:
            return await self.storage.delete_prefix(Zone.SILVER, container, folder)
        except NotFoundError:  # the container does not exist
            return 0
