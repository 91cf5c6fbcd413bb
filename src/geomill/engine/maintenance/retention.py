"""Deletes details of jobs that ended long ago, old dead letters and, if configured, the jobs themselves.

    mark the job, which bars a retry → delete its large outputs and intermediates → delete its rows, in batches → finish

The mark is also a lease: if its holder dies, another process continues when it expires. Objects are deleted before the
rows, because nothing would find them afterwards. All objects in the job's folder are deleted, including those that no
row refers to. The job's own row stays, with its result, because assets and requests refer to it.

Weakness: jobs whose assets wait for review are read and skipped each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from geomill.datasets import intermediates
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER
from geomill.domain.engine.large import CONTAINER, folder_of
from geomill.domain.objectname import Zone
from geomill.errors import GeomillError, NotFoundError, UnavailableError
from geomill.settings import RetentionSettings
from geomill.storage import NO_STORAGE, Storage
from geomill.store import retention
from geomill.store.duties import Duties
from geomill.store.pool import Pool

log = logging.getLogger(__name__)

FIRST_SECONDS = 30.0
BETWEEN_SECONDS = 0.1
"""The pause between two batches, so that other work gets its share of the database."""


@dataclass(frozen=True)
class RetentionOptions:
    """How long details and jobs are kept. None keeps them forever."""

    details: timedelta | None = None
    jobs: timedelta | None = None
    look_seconds: float = 600.0
    lease_seconds: float = 900.0
    batch: int = 20
    """The number of jobs in one batch."""
    rows: int = 2_000
    """The number of rows of each kind in one statement."""

    @classmethod
    def of(cls, settings: RetentionSettings) -> RetentionOptions:
        return cls(_days(settings.keep_details_days), _days(settings.keep_jobs_days))


def _days(days: float) -> timedelta | None:
    return timedelta(days=days) if days else None


@dataclass
class Pruned:
    """The numbers of rows and objects that one or several batches have deleted."""

    jobs: int = 0
    objects: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    dead_letters: int = 0
    job_rows: int = 0
    failed: dict[str, GeomillError] = field(default_factory=dict)
    """Job → reason why its details could not be deleted yet."""
    more: bool = False
    """Whether there may be more to delete."""

    def add(self, other: Pruned) -> None:
        self.jobs += other.jobs
        self.objects += other.objects
        self.rows += other.rows
        self.dead_letters += other.dead_letters
        self.job_rows += other.job_rows
        self.failed |= other.failed
        self.more = other.more


@dataclass
class Retention:
    pool: Pool
    storage: Storage = NO_STORAGE
    options: RetentionOptions = field(default_factory=RetentionOptions)
    duties: Duties | None = None
    """Records failures for /health."""

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop, because it waits for the object store."""
        options = self.options
        if options.details is None and options.jobs is None:
            await asyncio.Event().wait()
        pause = min(FIRST_SECONDS, options.look_seconds)
        while True:
            await asyncio.sleep(pause)
            pause = BETWEEN_SECONDS if await self._try_once() else options.look_seconds

    async def _try_once(self) -> bool:
        """Delete one batch. Returns whether there may be more to delete now."""
        try:
            pruned = await self.run_once()
        except psycopg.Error as error:
            self._trouble(error)
            return False
        if pruned.failed:
            self._trouble(next(iter(pruned.failed.values())))
            return False
        if self.duties:
            self.duties.passed("retention")
        return pruned.more

    def _trouble(self, error: Exception) -> None:
        log.warning("old data could not be deleted; it is tried again later: %s", error, extra={"action": "retention"})
        if self.duties:
            self.duties.failed("retention", error)

    async def run_once(self) -> Pruned:
        """Delete one batch of each kind."""
        options, pruned = self.options, Pruned()
        if options.details is not None:
            await self._delete_details(options.details, pruned)
            async with self.pool.connection() as conn:
                pruned.dead_letters = await retention.delete_dead_letters(conn, options.details, options.rows)
        if options.jobs is not None:
            async with self.pool.connection() as conn:
                pruned.job_rows = await retention.delete_jobs(conn, options.jobs, options.batch)
        pruned.more = (
            pruned.jobs >= options.batch or pruned.dead_letters >= options.rows or pruned.job_rows >= options.batch
        )
        return pruned

    async def _delete_details(self, older_than: timedelta, pruned: Pruned) -> None:
        async with self.pool.connection() as conn:
            marked = await retention.mark(conn, older_than, self.options.lease_seconds, self.options.batch)
        bare = await self._delete_objects(marked, pruned)
        if not bare:
            return
        async with self.pool.connection() as conn:
            while True:
                gone = await retention.delete_rows(conn, bare, self.options.rows)
                pruned.rows.update(gone)
                if max(gone["nodes"], gone["logs"], gone["events"], gone["checkpoints"]) < self.options.rows:
                    break
                await asyncio.sleep(0)
            await retention.finish(conn, bare)
        pruned.jobs += len(bare)
        log.info("deleted the details of %d old jobs", len(bare), extra={"action": "retention"})

    async def _delete_folder(self, container: str, folder: str) -> int:
        try:
            return await self.storage.delete_prefix(Zone.SILVER, container, folder)
        except NotFoundError:  # the container does not exist
            return 0

    async def _delete_objects(self, marked: list[str], pruned: Pruned) -> list[str]:
        """Delete the objects of marked jobs. Returns the jobs without objects. If the store is unavailable, the marks
        of the remaining jobs are released."""
        bare: list[str] = []
        for place, job_id in enumerate(marked):
            try:
                if self.storage is not NO_STORAGE:
                    pruned.objects += await self._delete_folder(CONTAINER, folder_of(job_id))
                    pruned.objects += await self._delete_folder(INTERMEDIATE_CONTAINER, intermediates.folder_of(job_id))
            except GeomillError as error:
                pruned.failed[job_id] = error
                if isinstance(error, UnavailableError):
                    async with self.pool.connection() as conn:
                        await retention.release(conn, marked[place + 1 :])
                    break
            else:
                bare.append(job_id)
        return bare
