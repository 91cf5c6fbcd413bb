"""Deletes extracts: files that callers ordered, when their time is over, or when their revision is gone.

    mark the rows, which bars callers and jobs → cancel jobs that still write → delete the files → delete the rows

A job that ends after the mark deletes its own file. A process that dies in between leaves marked rows, and another one
goes on with them.

Weakness: every extract is looked at each time. Their number is bounded by the limits of the orders.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field

from geomill.domain.assets.extract import CONTAINER, Extract
from geomill.domain.objectname import Zone
from geomill.engine import control
from geomill.engine.maintenance.batches import repeat_batches
from geomill.errors import ConflictError, NotFoundError
from geomill.storage import NO_STORAGE, Storage
from geomill.store import extracts
from geomill.store.duties import Duties
from geomill.store.pool import Pool

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OldExtractOptions:
    failed_seconds: float = 3600.0
    """How long an extract is shown after its job failed. Until then it counts against the limits of its caller."""
    look_seconds: float = 60.0
    batch: int = 50


@dataclass
class OldExtracts:
    pool: Pool
    job_queue: str
    storage: Storage = NO_STORAGE
    options: OldExtractOptions = field(default_factory=OldExtractOptions)
    duties: Duties | None = None

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop, because it waits for the object store."""
        if self.storage is NO_STORAGE:
            await asyncio.Event().wait()
        options = self.options
        await repeat_batches(
            "extracts", self.run_once, batch=options.batch, look_seconds=options.look_seconds, duties=self.duties
        )

    async def run_once(self) -> int:
        """Delete one batch of extracts. Returns how many there were."""
        async with self.pool.connection() as conn:
            due = await extracts.take_due(conn, self.options.failed_seconds, self.options.batch)
        for extract in due:
            await self._delete(extract)
        return len(due)

    async def _delete(self, extract: Extract) -> None:
        async with self.pool.connection() as conn:
            with suppress(ConflictError, NotFoundError):  # it has ended
                await control.cancel(conn, self.job_queue, extract.job_id, "its extract is no longer available")
        with suppress(NotFoundError):  # there is no container yet
            await self.storage.delete_prefix(Zone.SILVER, CONTAINER, extract.folder)
        async with self.pool.connection() as conn:
            await extracts.remove(conn, [extract.extract_id])
        log.info(
            "deleted the extract %s of %s",
            extract.extract_id,
            extract.asset_id,
            extra={"action": "extracts", "asset_id": extract.asset_id},
        )
