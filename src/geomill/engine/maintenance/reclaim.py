"""Takes over the work of dead processes: messages of workers return to their queues, jobs of orchestrators come here.

A process is dead when the lock of its session stays free, or when it has been silent for too long (absences.py). A
limited batch per look keeps one orchestrator from taking everything.

Weakness: a process behind a pooler that keeps sessions open looks alive until it has been silent for too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from geomill.domain.engine.event import EventStatus, EventType
from geomill.domain.engine.instance import InstanceRole
from geomill.domain.engine.job import Job
from geomill.engine.maintenance.absences import Absences
from geomill.queues import postgres as queue
from geomill.store import events, inbox, instances, jobs
from geomill.store.events import EventWrite
from geomill.store.instances import Absent
from geomill.store.pool import Connection
from geomill.store.signals import notify, owner_channel, queue_channel


@dataclass
class Reclaimed:
    """The result of a look: jobs taken over, overdue jobs, the other orchestrators, and what is due.

    `reports` and `submissions` say whether there are any. Usually a notification has arrived before.
    """

    jobs: list[Job] = field(default_factory=list)
    overdue: list[str] = field(default_factory=list)
    absent: bool = False
    """Whether a process is absent but not yet dead, so that the next look should come soon."""
    peers: int = 1
    active: int | None = 0
    schedules: bool = False
    callbacks: bool = False
    catalogue: bool = False
    reports: bool = False
    submissions: bool = False
    freed: list[str] = field(default_factory=list)
    """The queue of each task that waits again, because its worker is dead."""


@dataclass(frozen=True)
class Reclaimer:
    owner_id: str
    job_queue: str
    silent_seconds: float = instances.SILENT_SECONDS
    max_deliveries: int = 4
    batch: int = 50
    absences: Absences = field(default_factory=Absences)

    async def run_once(self, conn: Connection, *, thorough: bool = True) -> Reclaimed:
        """Look once. A look that is not `thorough` searches only for dead processes and for overdue or due work."""
        outlook = await instances.look(conn, self.owner_id, self.job_queue, self.silent_seconds, thorough=thorough)
        settled = outlook.settled and self.absences.may_judge
        reclaimed = Reclaimed(
            absent=outlook.absent,
            peers=outlook.peers,
            active=outlook.active,
            schedules=outlook.schedules,
            callbacks=outlook.callbacks,
            catalogue=outlook.catalogue,
            reports=outlook.reports,
            submissions=outlook.submissions,
        )
        dead = await self._dead(conn) if settled and outlook.absent else []
        if dead or outlook.orphans or outlook.lapsed:
            reclaimed.jobs, reclaimed.freed = await self._take_over(conn, dead, lapsed=settled)
        if outlook.strays:
            await inbox.readdress_strays(conn, self.owner_id)
            await notify(conn, [owner_channel(self.owner_id)])
        if outlook.overdue:
            reclaimed.overdue = await jobs.overdue(conn, self.owner_id)
        return reclaimed

    async def _dead(self, conn: Connection) -> list[Absent]:
        dead = self.absences.dead(await instances.absent(conn, self.silent_seconds))
        return [process for process in dead if process.instance_id != self.owner_id]

    async def _take_over(
        self, conn: Connection, dead: Sequence[Absent], *, lapsed: bool
    ) -> tuple[list[Job], list[str]]:
        """Take over the work of dead processes. With `lapsed`, leases that were not renewed in time count as lost,
        too. Returns the jobs, and the queue of each task that waits again."""
        names = [instance.instance_id for instance in dead]
        async with conn.transaction():
            taken_over = await jobs.reclaim(conn, self.owner_id, names, self.batch)
            if taken_over:
                await inbox.readdress(conn, self.owner_id, [job.job_id for job in taken_over])
            tried = await queue.tried(conn, names, lapsed=lapsed)
            failed = await queue.give_up(conn, names, self.max_deliveries, lapsed=lapsed, tried=tried)
            freed = await queue.release(conn, names, lapsed=lapsed, tried=tried)
            await queue.bury(conn)
            await events.insert(conn, [self._event(job) for job in taken_over])
            workers = [instance.instance_id for instance in dead if instance.role is InstanceRole.WORKER]
            await instances.forget(conn, workers if len(taken_over) == self.batch else names)
        await notify(conn, [*map(queue_channel, freed), *map(owner_channel, failed)])
        return taken_over, freed

    def _event(self, job: Job) -> EventWrite:
        return EventWrite(job.job_id, EventType.JOB_RECLAIMED, EventStatus.WARNING, data={"owner": self.owner_id})
