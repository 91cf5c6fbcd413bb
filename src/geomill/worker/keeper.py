"""Keeps the worker's word to the others: it is alive, its tasks are running, its leases are renewed.

And hears theirs: a task whose lease is gone was cancelled or given to somebody else. The check is one small query while
tasks run; short tasks and an idle worker do not cost one. What it does badly: it is part of the worker's event loop, so
an async handler that blocks it silences the worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

import psycopg

from geomill.domain.instance import InstanceRole
from geomill.domain.task import Report
from geomill.queues import postgres as queue
from geomill.store import inbox, instances
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, owner_channel
from geomill.store.tallies import Tallies
from geomill.worker.options import WorkerOptions
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)


class Keeper:
    def __init__(
        self, pool: Pool, worker_id: str, options: WorkerOptions, slots: Mapping[int, Slot], tallies: Tallies
    ) -> None:
        self._pool = pool
        self._worker_id = worker_id
        self._options = options
        self._slots = slots
        self._tallies = tallies
        self._beaten = self._renewed = time.monotonic()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(self._options.check_seconds, self._options.running_after_seconds / 2))
            await self.run_once(time.monotonic())

    async def run_once(self, now: float) -> None:
        duties = self._due(now)
        if duties:
            try:
                async with self._pool.connection() as conn:
                    for duty in duties:
                        await duty(conn, now)
            except psycopg.Error as error:
                if not passes(error):
                    raise
                log.warning("keeping the leases failed: %s", error)

    def _due(self, now: float) -> list[Callable[[Connection, float], Awaitable[None]]]:
        duties: list[Callable[[Connection, float], Awaitable[None]]] = []
        if self._late(now):
            duties.append(self._tell_running)
        if now - self._beaten >= self._options.beat_seconds:
            duties.append(self._beat)
        if self._tallies.due:
            duties.append(self._tell_tallies)
        if self._slots and now - self._renewed >= self._options.lease_seconds / 3:
            duties.append(self._renew)
        elif self._older(now):
            duties.append(self._check)
        return duties

    def _late(self, now: float) -> list[Slot]:
        return [slot for slot in self._older(now, self._options.running_after_seconds) if not slot.told_running]

    def _older(self, now: float, seconds: float | None = None) -> list[Slot]:
        limit = now - (self._options.check_seconds if seconds is None else seconds)
        return [slot for slot in self._slots.values() if slot.leased <= limit and not slot.lost]

    async def _tell_running(self, conn: Connection, now: float) -> None:
        late = self._late(now)
        owners = await inbox.settle(conn, self._worker_id, [slot.settlement(Report.RUNNING) for slot in late])
        for slot in late:
            slot.told_running = True
        self._lose(slot for slot in late if slot.delivery.sequence not in owners)
        await notify(conn, map(owner_channel, owners.values()))

    async def _tell_tallies(self, conn: Connection, _now: float) -> None:
        await self._tallies.tell(conn)

    async def _beat(self, conn: Connection, now: float) -> None:
        self._beaten = now
        if not await instances.beat(conn, self._worker_id):
            log.warning("others took this worker for dead; it registers again")
            await instances.appear(conn, self._worker_id, InstanceRole.WORKER, self._options.queues)

    async def _renew(self, conn: Connection, now: float) -> None:
        slots = [slot for slot in self._slots.values() if not slot.lost]
        ours = await queue.renew(conn, [slot.delivery for slot in slots], self._options.lease_seconds)
        self._renewed = now
        self._lose(slot for slot in slots if slot.delivery.sequence not in ours)

    async def _check(self, conn: Connection, now: float) -> None:
        slots = self._older(now)
        lost = await queue.lost(conn, [slot.delivery for slot in slots])
        self._lose(slot for slot in slots if slot.delivery.sequence in lost)

    def _lose(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            if not slot.closed:
                log.info("the task is no longer ours: %s", slot.message.task_id)
                slot.lose(time.monotonic() + self._options.grace_seconds)
