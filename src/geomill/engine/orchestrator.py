"""The orchestrator process: it claims jobs, makes rounds and takes over orphans.

Notifications wake it. A look each second finds what a lost notification has missed. Its memory follows the database and
changes only after a commit. After a lost connection the outcome of the last commit is unknown, so it reads all its jobs
again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

import psycopg

from geomill.catalogue.following import CatalogueFollower
from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.instance import InstanceRole
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.states import JOB_MACHINE
from geomill.engine.advance import Kicks
from geomill.engine.claim import Claimer
from geomill.engine.fairness import TenantShare
from geomill.engine.large import LargeOutputs
from geomill.engine.maintenance.absences import Absences
from geomill.engine.maintenance.attendance import Attendance, AttendanceOptions
from geomill.engine.maintenance.callbacks import CallbackCaller, CallbackOptions
from geomill.engine.maintenance.entrance import Entrance
from geomill.engine.maintenance.extracts import OldExtractOptions, OldExtracts
from geomill.engine.maintenance.fetching import FetchOptions, UrlFetcher
from geomill.engine.maintenance.leftovers import LeftoverOptions, Leftovers
from geomill.engine.maintenance.reclaim import Reclaimer
from geomill.engine.maintenance.retention import Retention, RetentionOptions
from geomill.engine.maintenance.schedules import Scheduler
from geomill.engine.maintenance.uploads import OldUploadOptions, OldUploads
from geomill.engine.owned import Graphs, OwnedJob, load
from geomill.engine.permits import PermitSender
from geomill.engine.rounds import Rounds
from geomill.errors import UnavailableError
from geomill.process import Duty, run_duties
from geomill.queues.floors import Effort
from geomill.queues.servicebus import Bus
from geomill.storage import NO_STORAGE, Storage
from geomill.store import instances, jobs
from geomill.store.activity import Activity
from geomill.store.duties import Duties
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.replanning import drop_plans
from geomill.store.signals import ORPHANS_CHANNEL, SCHEMA_CHANNEL, Signals, notify, owner_channel, queue_channel
from geomill.store.tallies import Tallies
from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)

ALONE = 4
"""The factor by which an orchestrator without peers claims more submissions at once."""
LOOK_SECONDS = 15.0
"""The time limit of a look. After it the session is given up."""
AFTER_SECONDS = 0.005
"""The delay of a reminder, so that it comes a little late rather than a little early."""


@dataclass(frozen=True)
class OrchestratorOptions:
    job_queue: str = "dag-jobs"
    task_queues: tuple[str, ...] = TASK_QUEUES
    claim_batch: int = 25
    scan_seconds: float = 1.0
    reclaim_batch: int = 50
    beat_seconds: float = instances.BEAT_SECONDS
    silent_seconds: float = instances.SILENT_SECONDS
    max_deliveries: int = 4
    callbacks: CallbackOptions = field(default_factory=CallbackOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)
    attendance: AttendanceOptions = field(default_factory=AttendanceOptions)
    leftovers: LeftoverOptions = field(default_factory=LeftoverOptions)
    uploads: OldUploadOptions = field(default_factory=OldUploadOptions)
    fetching: FetchOptions = field(default_factory=FetchOptions)
    extracts: OldExtractOptions = field(default_factory=OldExtractOptions)


@dataclass
class Orchestrator:
    url: str
    pool: Pool
    workflow_registry: WorkflowRegistry
    options: OrchestratorOptions = field(default_factory=OrchestratorOptions)
    instance_id: str = field(default_factory=lambda: instances.new_instance_id(InstanceRole.ORCHESTRATOR))
    storage: Storage = NO_STORAGE
    """The store of large outputs."""
    bus: Bus | None = None
    """Service Bus, if workers learn from it that tasks wait."""

    def __post_init__(self) -> None:
        options = self.options
        self._graphs = Graphs()
        self._owned: dict[str, OwnedJob] = {}
        self._kicks = Kicks()
        self._taken_over: set[str] = set()
        """Jobs that this orchestrator has taken over and must read before the next round."""
        self._reminders: set[str] = set()
        self._unsure = False
        self._someone_is_absent = False
        self._share = TenantShare()
        self._active = 0
        self._effort = Effort()
        self._claimer = Claimer(self.instance_id, options.job_queue, self.workflow_registry, self._graphs)
        self._reclaimer = Reclaimer(
            self.instance_id,
            options.job_queue,
            options.silent_seconds,
            options.max_deliveries,
            options.reclaim_batch,
            Absences(options.beat_seconds),
        )
        self._scheduler = Scheduler(self.workflow_registry, options.job_queue)
        self._duties = Duties(self.instance_id)
        self._follower = CatalogueFollower(self.pool, self._duties)
        self._tallies, self._activity = Tallies(), Activity()
        self._callbacks = CallbackCaller(self.pool, options.callbacks, self._duties)
        self._retention = Retention(self.pool, self.storage, options.retention, self._duties)
        self._leftovers = Leftovers(self.pool, self.storage, options.leftovers, self._duties)
        self._old_uploads = OldUploads(self.pool, self.storage, options.uploads, self._duties)
        self._old_extracts = OldExtracts(self.pool, options.job_queue, self.storage, options.extracts, self._duties)
        self._fetcher = UrlFetcher(self.pool, self.storage, options.fetching, self._duties)
        self._attendance = Attendance(
            self.pool, options.job_queue, self.workflow_registry, self._recalled, options.attendance, self._duties
        )
        self._permits: PermitSender | None = None
        if self.bus:
            self._permits = PermitSender(self.bus, self.pool, self._duties, options.task_queues)
        self._jobs_channel = queue_channel(options.job_queue)
        self._inbox_channel = owner_channel(self.instance_id)
        channels = (self._jobs_channel, self._inbox_channel, ORPHANS_CHANNEL)
        self._signals = Signals(self.url, channels, self._on_connect)
        self._large = LargeOutputs(self.storage, self._wake)
        self._rounds = Rounds(self.instance_id, self._owned, self._kicks, self._large, self._duties, self._wake)

    def _wake(self) -> None:
        self._signals.poke(self._inbox_channel)

    @property
    def owned(self) -> int:
        return len(self._owned)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then release all jobs to other orchestrators."""
        await self._signals.start()
        duties = [self._signals.run, self._work, self._watch]
        beside = (
            self._callbacks,
            self._follower,
            self._retention,
            self._leftovers,
            self._attendance,
            self._old_uploads,
            self._old_extracts,
            self._fetcher,
        )
        duties += [duty.run for duty in beside]
        duties += self._service_bus()
        await run_duties(stop, *duties, leave=self._leave)

    def _service_bus(self) -> list[Duty]:
        """Return the duties that Service Bus needs, if it is used."""
        if not self.bus or not self._permits:
            return []
        entrance = Entrance(self.bus, self.pool, self.workflow_registry, self.options.job_queue, self._duties)
        return [self._permits.send_for_ever, self._permits.remind_for_ever, entrance.run]

    async def _leave(self) -> None:
        try:
            await self._release_all()
        except psycopg.Error as error:
            log.warning("the jobs of %s could not be released; others will take them over: %s", self.instance_id, error)
        await self._signals.stop()

    async def _release_all(self) -> None:
        async with self.pool.connection() as conn:
            async with conn.transaction():
                await jobs.release(conn, self.instance_id)
                await instances.remove(conn, self.instance_id)
            await notify(conn, [ORPHANS_CHANNEL])

    async def _on_connect(self, conn: Connection) -> None:
        if await instances.register(conn, self.instance_id, InstanceRole.ORCHESTRATOR, [self.options.job_queue]):
            self._unsure = True  # a start, or others took this process for dead: read the owned jobs again
        self._reclaimer.absences.beaten()

    # Jobs

    async def _work(self) -> None:
        """React to notifications, on one session for as long as it lasts."""
        while True:
            try:
                async with self.pool.connection() as conn:
                    await self._look_after_orphans(conn)  # counts the peers before the first claim
                    while True:
                        channels = await self._signals.wait()
                        await self._react(conn, channels)
            except psycopg.Error as error:
                if not passes(error):
                    raise
                log.warning("the database connection was lost; all owned jobs are read again: %s", error)
                self._unsure = True
                self._activity.count("errors")
                await asyncio.sleep(self.options.scan_seconds)
                self._signals.poke(self._inbox_channel)
                self._signals.poke(self._jobs_channel)

    async def _react(self, conn: Connection, channels: set[str]) -> None:
        """Handle reports and submissions in turn, until there are none."""
        if SCHEMA_CHANNEL in channels:
            await drop_plans(conn)
        if self._unsure:
            await self._reload(conn)
        await self._adopt_taken_over(conn)
        if ORPHANS_CHANNEL in channels:
            await self._look_after_orphans(conn, thorough=True)
        if self._reminders:
            due, self._reminders = self._reminders, set()
            await notify(conn, due)
        reports, submissions = self._inbox_channel in channels, self._jobs_channel in channels
        while reports or submissions:
            submissions = submissions and await self._claim(conn)
            # New reports send a notification of their own. Reading an empty inbox would slow the workers down.
            reports = (reports or submissions or bool(self._kicks)) and await self._advance(conn)
            await asyncio.sleep(0)

    async def _reload(self, conn: Connection) -> None:
        """Read all owned jobs again, because the outcome of the last commit is unknown."""
        self._owned.clear()
        self._taken_over.clear()
        self._rounds.look_from_the_head()
        for job in await jobs.owned(conn, self.instance_id):
            if job.job_id not in self._rounds.unparked:
                await self._adopt(conn, job)
        self._unsure = False

    async def _adopt_taken_over(self, conn: Connection) -> None:
        """Read the jobs that were taken over. This happens only between rounds: state that was read during a round
        would be older than the round, and valid reports would count as stale."""
        job_ids, self._taken_over = self._taken_over, set()
        if job_ids:
            self._rounds.look_from_the_head()
        for job_id in job_ids:
            job = await jobs.find(conn, job_id)
            if job and job.owner_id == self.instance_id and job.status not in JOB_MACHINE.terminal:
                await self._adopt(conn, job)

    async def _adopt(self, conn: Connection, job: Job) -> None:
        try:
            self._owned[job.job_id] = await load(conn, job, self._graphs, self._large)
        except UnavailableError as error:
            log.warning("%s waits for its large outputs: %s", job.job_id, error, extra={"action": "take_over"})
            asyncio.get_running_loop().call_later(self.options.scan_seconds, self._doubt)
            return
        except Exception as error:  # it would end every orchestrator that takes the job over
            if passes(error):
                raise
            reference = new_reference()
            log.exception("the job %s cannot be read, reference %s", job.job_id, reference)
            await self._rounds.park(
                conn, job.job_id, f"the job cannot be read: see the log for the reference {reference}"
            )
            return
        self._kicks.adopted.add(job.job_id)

    def _doubt(self) -> None:
        """Have the owned jobs read again."""
        self._unsure = True
        self._signals.poke(self._inbox_channel)

    async def _advance(self, conn: Connection) -> bool:
        """Make a round. Returns whether there may be more reports."""
        try:
            done = await self._rounds.once(conn)
        except psycopg.DatabaseError as error:
            if passes(error):
                raise
            log.exception("the database refused a round; searching for the job that causes it")
            self._activity.count("errors")
            await self._reload(conn)
            done = await self._rounds.in_parts(conn)
        if self._permits:
            self._permits.owe(done.batches)
        self._tallies.count("transitions", done.transitions)
        self._tallies.count("retries", done.retries)
        self._tallies.count("stale_results", done.stale)
        self._activity.count("results", done.reports)
        self._activity.count("dispatched", done.dispatched)
        for queue_name, seconds in done.delays.items():
            asyncio.get_running_loop().call_later(seconds + AFTER_SECONDS, self._remind, queue_name)
        if done.assets_ended:
            self._follower.wake()
        if done.unknown:
            await self._reload(conn)
        return done.reports > 0 or bool(self._kicks)

    def _remind(self, queue_name: str) -> None:
        """Have the workers of a queue notified, because a retry is due."""
        self._reminders.add(queue_channel(queue_name))
        self._signals.poke(self._inbox_channel)

    async def _claim(self, conn: Connection) -> bool:
        """Claim submissions. Returns whether there may be more."""
        patience = self._share.patience(len(self._owned))
        batch = self.options.claim_batch * (1 if self._share.peers > 1 else ALONE)
        claimed = await self._claimer.claim(conn, batch, patience)
        self._owned.update({job.job_id: job for job in claimed.jobs})
        self._kicks.more |= claimed.more
        if self._permits:
            self._permits.owe(claimed.batches)
        self._activity.count("claimed", len(claimed.waits))
        self._activity.count("dispatched", claimed.dispatched)
        for waited in claimed.waits:
            self._tallies.observe("job_claim_seconds", waited)
        if patience:
            asyncio.get_running_loop().call_later(patience, self._signals.poke, self._jobs_channel)
            return False
        return claimed.messages == batch

    # Duties

    def _recalled(self) -> None:
        """Claim again, because submissions that were put aside have been recalled."""
        self._signals.poke(self._jobs_channel)

    async def _watch(self) -> None:
        """Send the heartbeat and look after the work of dead processes. Failures are shown in /health."""
        beaten = -self.options.beat_seconds
        while True:
            pause = self.options.scan_seconds
            await asyncio.sleep(min(pause, instances.ABSENT_SECONDS) if self._someone_is_absent else pause)
            try:
                async with asyncio.timeout(LOOK_SECONDS), self.pool.connection() as conn:
                    silent = time.monotonic() - beaten >= self.options.beat_seconds
                    if silent or not self._signals.connected.is_set():
                        await self._beat(conn)
                        beaten = time.monotonic()
                    await self._look_after_orphans(conn)
                    self._duties.passed("lookout")
                    await self._duties.tell(conn)
                    if self._tallies.due:
                        await self._tallies.tell(conn)
            except (psycopg.Error, TimeoutError) as error:
                self._duties.failed("lookout", error)
                self._activity.count("errors")
                reason = str(error) or f"no answer within {LOOK_SECONDS:g} s"
                log.warning("the look failed and is repeated in %s s: %s", self.options.scan_seconds, reason)

    async def _beat(self, conn: Connection) -> None:
        pulse = await instances.beat(conn, self.instance_id, self._activity)
        self._reclaimer.absences.beaten()
        if pulse.locked and not pulse.registered:
            log.warning("others took %s for dead: it registers again", self.instance_id)
            await instances.appear(conn, self.instance_id, InstanceRole.ORCHESTRATOR, [self.options.job_queue])
            self._unsure = True

    async def _look_after_orphans(self, conn: Connection, *, thorough: bool = False) -> None:
        """Look once. After an expensive thorough look, further ones are omitted for a while (queues/floors.py)."""
        begun = time.monotonic()
        thorough = thorough or not self._effort.spare(begun)
        reclaimed = await self._reclaimer.run_once(conn, thorough=thorough)
        self._activity.looked()
        if thorough:
            self._effort.note(time.monotonic() - begun, 0, begun)
        if reclaimed.active is not None:
            self._active = reclaimed.active
        self._share.update(reclaimed.peers, self._active)
        self._someone_is_absent = reclaimed.absent
        self._tallies.count("jobs_reclaimed", len(reclaimed.jobs))
        self._activity.count("reclaimed", len(reclaimed.jobs))
        self._taken_over.update(job.job_id for job in reclaimed.jobs)
        self._kicks.overdue.update(reclaimed.overdue)
        if self._permits:
            self._permits.owe_again(reclaimed.freed)
        if self._taken_over or self._kicks or reclaimed.reports:
            self._signals.poke(self._inbox_channel)
        if reclaimed.submissions:
            self._signals.poke(self._jobs_channel)
        if reclaimed.schedules:
            await self._scheduler.run_once(conn)
        if reclaimed.callbacks:
            self._callbacks.wake()
        if reclaimed.catalogue:
            self._follower.wake()
