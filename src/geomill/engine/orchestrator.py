"""The orchestrator process: claim, advance, look after orphans; woken by signals, with a poll behind them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import psycopg

from geomill.domain.instance import InstanceRole
from geomill.engine.advance import advance
from geomill.engine.claim import Claimer
from geomill.engine.maintenance.reclaim import reclaim
from geomill.engine.owned import Graphs, OwnedJob, load
from geomill.process import run_duties
from geomill.store import instances, jobs
from geomill.store.pool import Connection, Pool
from geomill.store.signals import Signals, notify, owner_channel, queue_channel
from geomill.workflows.catalogue import WorkflowCatalogue

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OrchestratorOptions:
    job_queue: str = "dag-jobs"
    poll_seconds: float = 1.0
    claim_batch: int = 50
    scan_seconds: float = 1.0
    reclaim_batch: int = 50
    beat_seconds: float = 5.0


@dataclass
class Orchestrator:
    url: str
    pool: Pool
    catalogue: WorkflowCatalogue
    options: OrchestratorOptions = field(default_factory=OrchestratorOptions)
    instance_id: str = field(default_factory=lambda: instances.new_instance_id(InstanceRole.ORCHESTRATOR))

    def __post_init__(self) -> None:
        self._graphs = Graphs()
        self._owned: dict[str, OwnedJob] = {}
        self._claimer = Claimer(self.instance_id, self.options.job_queue, self.catalogue, self._graphs)
        self._jobs_channel = queue_channel(self.options.job_queue)
        self._inbox_channel = owner_channel(self.instance_id)
        self._signals = Signals(self.url, (self._jobs_channel, self._inbox_channel), self._on_connect)

    @property
    def owned(self) -> int:
        return len(self._owned)

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop; then its jobs are free for others at once."""
        await self._signals.start()
        await run_duties(stop, self._work, self._watch, leave=self._leave)

    async def _leave(self) -> None:
        async with self.pool.connection() as conn, conn.transaction():
            await jobs.release(conn, self.instance_id)
            await instances.remove(conn, self.instance_id)
        await self._signals.stop()

    async def _on_connect(self, conn: Connection) -> None:
        await instances.register(conn, self.instance_id, InstanceRole.ORCHESTRATOR)

    async def _work(self) -> None:
        while True:
            heard = await self._signals.wait(self.options.poll_seconds)
            try:
                await self._react(heard)
            except psycopg.OperationalError as error:
                log.warning("the database went away, starting again from its state: %s", error)
                await asyncio.sleep(self.options.poll_seconds)
                self._owned.clear()
                self._signals.poke(self._inbox_channel)
                self._signals.poke(self._jobs_channel)

    async def _react(self, heard: set[str]) -> None:
        async with self.pool.connection() as conn:
            if not self._owned:
                await self._reload(conn)
            if self._inbox_channel in heard:
                await self._advance(conn)
            if self._jobs_channel in heard:
                await self._claim(conn)

    async def _reload(self, conn: Connection) -> None:
        for job in await jobs.owned(conn, self.instance_id):
            self._owned[job.job_id] = await load(conn, job, self._graphs)

    async def _advance(self, conn: Connection) -> None:
        while (done := await advance(conn, self.instance_id, self._owned)).reports:
            await notify(conn, map(queue_channel, done.queues))

    async def _claim(self, conn: Connection) -> None:
        while True:
            claimed, batch, taken = await self._claimer.claim(conn, self.options.claim_batch)
            self._owned.update({job.job_id: job for job in claimed})
            await notify(conn, map(queue_channel, batch.queues))
            if taken < self.options.claim_batch:
                return

    async def _watch(self) -> None:
        """Heartbeat, and whatever dead processes left behind."""
        while True:
            await asyncio.sleep(self.options.scan_seconds)
            try:
                async with self.pool.connection() as conn:
                    await instances.beat(conn, self.instance_id)
                    taken = await reclaim(conn, self.instance_id, self.options.reclaim_batch)
                    for job in taken:
                        self._owned[job.job_id] = await load(conn, job, self._graphs)
                if taken:
                    self._signals.poke(self._inbox_channel)
            except psycopg.OperationalError as error:
                log.warning("the look-out for orphans failed, again in %s s: %s", self.options.scan_seconds, error)
