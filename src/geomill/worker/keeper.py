"""Sends heartbeats, reports running tasks and renews leases.

It also checks the leases: a task whose lease is gone was cancelled or given to another worker. The check is one small
query while tasks run; short tasks and an idle worker need none. If this worker lost a lease although it is alive, it
takes the lease back, unless another worker has leased the task since. While the worker has no listening session it
holds no lock, so it sends a heartbeat at each turn instead.

Weakness: it runs in the worker's event loop, so an async handler that blocks the loop silences the worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import psycopg
from psycopg.errors import DiskFull, ReadOnlySqlTransaction

from geomill.domain.engine.instance import InstanceRole
from geomill.domain.engine.task import TaskReport
from geomill.queues import postgres as queue
from geomill.queues.postgres import Held
from geomill.store import inbox, instances
from geomill.store.activity import Activity
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, owner_channel
from geomill.store.tallies import Tallies
from geomill.worker.children.clock import clock
from geomill.worker.contact import Contact, refuses
from geomill.worker.options import WorkerOptions
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""How long to wait for a free session."""


class Keeper:
    def __init__(
        self,
        url: str,
        pool: Pool,
        worker_id: str,
        options: WorkerOptions,
        slots: Mapping[int, Slot],
        tallies: Tallies,
        activity: Activity,
        contact: Contact,
        listening: asyncio.Event,
        versions: Mapping[str, str],
    ) -> None:
        self._url = url
        self._pool = pool
        self._worker_id = worker_id
        self._listening = listening
        self._contact = contact
        self._ended_early: set[int] = set()
        """Tasks that were stopped because other workers might begin them."""
        self._options = options
        self._slots = slots
        self._tallies = tallies
        self._activity = activity
        self._versions = versions
        self._beaten = self._renewed = time.monotonic()

    async def register(self, conn: Connection) -> None:
        """Register the worker, on the listening session."""
        sent_at = clock()
        options = self._options
        is_new = await instances.register(
            conn, self._worker_id, InstanceRole.WORKER, options.queues, options.concurrency
        )
        await self._came_back(conn, sent_at, is_new=is_new)

    async def _came_back(self, conn: Connection, sent_at: float, *, is_new: bool) -> None:
        self._contact.heard(sent_at)
        if is_new:
            await instances.note_handlers(conn, self._worker_id, self._versions)
            await queue.forgive(conn, self._ended_early.union(self._slots))
        self._ended_early.clear()

    def stop_all(self) -> None:
        """End all tasks. From now on others may get them, and this worker would not know."""
        running = [slot for slot in self._slots.values() if not slot.lost]
        if running:
            log.warning("no contact with the database: %d tasks end before others begin them", len(running))
        for slot in running:
            self._ended_early.add(slot.delivery.sequence)
            slot.lose(time.monotonic())
            slot.force()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(self._options.check_seconds, self._options.running_after_seconds / 2))
            await self.run_once(time.monotonic())

    async def run_once(self, now: float) -> None:
        duties = self._due(now)
        if duties:
            try:
                async with self._pool.connection(PATIENCE_SECONDS) as conn:
                    for duty in duties:
                        await duty(conn, now)
            except psycopg.Error as error:
                if not passes(error):
                    raise
                log.warning("keeping the leases failed: %s", error)
                await self._ask_why(error)

    async def _ask_why(self, error: psycopg.Error) -> None:
        """Keep the tasks while the server refuses connections or writes, because then they cannot be given away."""
        asked_at = clock()
        if isinstance(error, ReadOnlySqlTransaction | DiskFull) or await asyncio.to_thread(refuses, self._url):
            self._contact.refused(asked_at)

    def _due(self, now: float) -> list[Callable[[Connection, float], Awaitable[None]]]:
        duties: list[Callable[[Connection, float], Awaitable[None]]] = []
        if self._late(now):
            duties.append(self._tell_running)
        if now - self._beaten >= self._options.beat_seconds or not self._listening.is_set():
            duties.append(self._beat)
        if self._tallies.due:
            duties.append(self._tell_tallies)
        if self._slots and now - self._renewed >= self._options.lease_seconds / 3:
            duties.append(self._renew)
        elif self._older(now):
            duties.append(self._check)
        return duties

    def _late(self, now: float) -> list[Slot]:
        older = self._older(now, self._options.running_after_seconds)
        return [slot for slot in older if slot.task and not slot.told_running]

    def _older(self, now: float, seconds: float | None = None) -> list[Slot]:
        limit = now - (self._options.check_seconds if seconds is None else seconds)
        return [slot for slot in self._slots.values() if slot.leased <= limit and not slot.lost]

    async def _tell_running(self, conn: Connection, now: float) -> None:
        late = self._late(now)
        owners = await inbox.settle(conn, self._worker_id, [slot.settlement(TaskReport.RUNNING) for slot in late])
        for slot in late:
            slot.told_running = True
        await self._lose(conn, [slot for slot in late if slot.delivery.sequence not in owners])
        await notify(conn, map(owner_channel, owners.values()))

    async def _tell_tallies(self, conn: Connection, _now: float) -> None:
        await self._tallies.tell(conn)

    async def _beat(self, conn: Connection, now: float) -> None:
        sent_at = clock()
        pulse = await instances.beat(conn, self._worker_id, self._activity)
        self._beaten = now
        if not pulse.registered and pulse.locked:
            log.warning("others took this worker for dead; it registers again")
            options = self._options
            await instances.appear(conn, self._worker_id, InstanceRole.WORKER, options.queues, options.concurrency)
        if pulse.registered or pulse.locked:  # otherwise the listening session must take the lock and register first
            await self._came_back(conn, sent_at, is_new=not pulse.registered)

    async def _renew(self, conn: Connection, now: float) -> None:
        slots = [slot for slot in self._slots.values() if not slot.lost]
        renewed = await queue.renew(conn, [slot.delivery for slot in slots], self._options.lease_seconds)
        self._renewed = now
        await self._lose(conn, [slot for slot in slots if slot.delivery.sequence not in renewed])

    async def _check(self, conn: Connection, now: float) -> None:
        slots = self._older(now)
        lost = await queue.lost(conn, [slot.delivery for slot in slots])
        await self._lose(conn, [slot for slot in slots if slot.delivery.sequence in lost])

    async def recover(self, conn: Connection, ended: Sequence[Held]) -> None:
        """Take back the leases that the server lost in an outage, before anything is reported."""
        leases = [*(slot.delivery for slot in self._slots.values() if not slot.lost), *ended]
        lost = await queue.lost(conn, leases)
        await self._take_back(conn, [lease for lease in leases if lease.sequence in lost])

    async def _take_back(self, conn: Connection, lost: Sequence[Held]) -> set[int]:
        taken_back = await queue.take_back(conn, self._worker_id, lost, self._options.lease_seconds) if lost else set()
        if taken_back:
            log.info("%d lost leases were taken back", len(taken_back))
        return taken_back

    async def _lose(self, conn: Connection, slots: Sequence[Slot]) -> None:
        taken_back = await self._take_back(conn, [slot.delivery for slot in slots])
        for slot in slots:
            if not slot.closed and slot.delivery.sequence not in taken_back:
                log.info("the lease of the task is lost: %s", slot.message.task_id)
                slot.lose(time.monotonic() + self._options.grace_seconds)
