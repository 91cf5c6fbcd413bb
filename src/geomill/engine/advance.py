"""One round of an orchestrator: reports in, decisions out, for all its jobs at once, in one fenced transaction.

    peek the inbox → evaluate in memory → one statement: lock and check the jobs, write everything → apply in memory

If a job fails the fence, another orchestrator owns it now, and nothing of the round is written. The jobs of the round
are dropped from memory, and those that this orchestrator still owns are read again. The reports stay in the inbox.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.decision import Decision
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.states import JOB_MACHINE
from geomill.engine.aggregation import answer_all
from geomill.engine.batch import RoundBatch
from geomill.engine.calls import calls, free_slots
from geomill.engine.large import LargeOutputs
from geomill.engine.owned import OwnedJob
from geomill.store import inbox, rounds
from geomill.store.inbox import Arrival
from geomill.store.pool import Connection, transaction_time
from geomill.store.signals import send

log = logging.getLogger(__name__)

LARGEST_ROUND = 2_000


@dataclass
class Round:
    """The effects of a round."""

    reports: int = 0
    transitions: int = 0
    retries: int = 0
    stale: int = 0
    dispatched: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    """Seconds until the first delayed message of each queue is due."""
    lost: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    assets_ended: bool = False
    """Whether a job of an asset ended, so that a catalogue entry is due."""
    unknown: set[str] = field(default_factory=set)
    """Jobs that this orchestrator owns by the database, but that are not in its memory."""

    batches: list[RoundBatch] = field(default_factory=list)
    """The batches that were written. Their tasks need permits where Service Bus delivers them."""
    look_seconds: float = 0.0
    """How long the read of the inbox took."""
    reached: int = 0
    """All reports before this sequence that were read have been taken."""

    def add(self, other: Round) -> None:
        self.reports += other.reports
        self.transitions += other.transitions
        self.retries += other.retries
        self.stale += other.stale
        self.dispatched += other.dispatched
        for queue_name, seconds in other.delays.items():
            self.delays[queue_name] = min(seconds, self.delays.get(queue_name, seconds))
        self.lost |= other.lost
        self.ended |= other.ended
        self.assets_ended |= other.assets_ended
        self.unknown |= other.unknown
        self.batches += other.batches


class LockedRoundError(Exception):
    """Another transaction holds a row that the round needs. Nothing was written, and memory is unchanged."""

    def __init__(self, jobs: Collection[str]) -> None:
        super().__init__(f"a row of one of {len(jobs)} jobs is locked")
        self.jobs = frozenset(jobs)


@dataclass
class Kicks:
    """Jobs that need a decision without a report: taken over, past their deadline, or with more items to send."""

    adopted: set[str] = field(default_factory=set)
    overdue: set[str] = field(default_factory=set)
    more: set[str] = field(default_factory=set)

    def take(self, only: Collection[str] | None = None, idle: Collection[str] = ()) -> Kicks:
        """Remove and return the kicks, with `only` those of these jobs. Kicks of `idle` jobs stay."""
        jobs = (self.jobs if only is None else self.jobs & set(only)) - set(idle)
        kicked = Kicks(self.adopted & jobs, self.overdue & jobs, self.more & jobs)
        self.adopted -= jobs
        self.overdue -= jobs
        self.more -= jobs
        return kicked

    def put_back(self, kicked: Kicks) -> None:
        self.adopted |= kicked.adopted
        self.overdue |= kicked.overdue
        self.more |= kicked.more

    @property
    def jobs(self) -> set[str]:
        return self.adopted | self.overdue | self.more

    def __bool__(self) -> bool:
        return bool(self.adopted or self.overdue or self.more)


async def advance(
    conn: Connection,
    owner_id: str,
    owned: dict[str, OwnedJob],
    kicks: Kicks,
    large: LargeOutputs,
    limit: int = LARGEST_ROUND,
    *,
    idle: Collection[str] = (),
    only: Collection[str] | None = None,
    floor: int = 0,
) -> Round:
    """Apply the reports that have arrived, and the kicks. Jobs that ended or were lost leave `owned`.

    `idle` jobs are left alone, with their reports and kicks. With `only`, all other jobs are left alone. Reports before
    the `floor` are not read. Raises `LockedRoundError`.

    There are three round trips: read, write under the fence, wake the workers. For a single report the write also wakes
    the workers. Only the write is a transaction: nobody but the owner can change the data that is read before it, and
    the write checks who the owner is.
    """
    done = Round()
    begun = time.perf_counter()
    waiting = await inbox.peek(conn, owner_id, limit, idle, floor)
    done.look_seconds = time.perf_counter() - begun
    if only is not None:
        waiting = [arrival for arrival in waiting if arrival.job_id in only]
    arrivals = large.ready(waiting, only, idle)
    kicked = kicks.take(only, idle)
    if waiting:
        ready = {arrival.sequence for arrival in arrivals}
        sequences = [arrival.sequence for arrival in waiting]
        done.reached = next((sequence for sequence in sequences if sequence not in ready), sequences[-1] + 1)
    if not arrivals and not kicked:
        return done
    done.reports = len(arrivals)
    by_job = _by_job(arrivals)
    concerned = by_job.keys() | kicked.jobs
    affected = {job_id: owned[job_id] for job_id in sorted(concerned & owned.keys())}
    reports = [arrival.sequence for job_id in affected for arrival in by_job.get(job_id, [])]
    epochs = {job_id: job.epoch for job_id, job in affected.items()}
    alone = len(reports) == 1
    try:
        decisions = await _decide_all(conn, affected, by_job, kicked, large)
        batch = _batch(decisions, by_job)
        to_call = calls(batch.tasks, free_slots(arrivals))
        if affected and not await rounds.commit(conn, owner_id, epochs, batch, reports, to_call if alone else ()):
            done.lost, decisions = set(affected), []
    except psycopg.DatabaseError as error:
        kicks.put_back(kicked)
        large.put_back(arrivals)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            raise LockedRoundError(affected) from error
        raise
    if decisions:
        done.batches.append(batch)
        done.delays = _delays(batch, arrivals)
        _count(done, decisions)
    if decisions and not alone:
        await send(conn, to_call)
    done.lost |= concerned - affected.keys()
    done.unknown = await inbox.forward(conn, owner_id, done.lost)
    _remember(owned, decisions, done)
    if done.lost:
        large.forget(done.lost)
    kicks.more |= {job.job_id for job, decision in decisions if decision.more and job.job_id in owned}
    return done


def _count(done: Round, decisions: Iterable[tuple[OwnedJob, Decision]]) -> None:
    for _, decision in decisions:
        done.transitions += len(decision.steps) + decision.quiet_steps
        done.retries += decision.retries
        done.stale += len(decision.stale)
        done.dispatched += len(decision.dispatches)


def _delays(batch: RoundBatch, arrivals: Sequence[Arrival]) -> dict[str, float]:
    """Return the seconds until the first retry of each queue is due. The orchestrator wakes the workers then."""
    delays: dict[str, float] = {}
    for message in batch.messages:
        if message.visible_at and arrivals:
            seconds = max((message.visible_at - arrivals[0].now).total_seconds(), 0.0)
            delays[message.queue_name] = min(seconds, delays.get(message.queue_name, seconds))
    return delays


def _remember(owned: dict[str, OwnedJob], decisions: Iterable[tuple[OwnedJob, Decision]], done: Round) -> None:
    """Apply committed decisions to the jobs in memory, and drop those that ended or were lost."""
    for job, decision in decisions:
        job.run.apply(decision)
        if decision.status in JOB_MACHINE.terminal:
            done.ended.add(job.job_id)
            done.assets_ended |= job.has_asset
    for job_id in done.lost | done.ended:
        owned.pop(job_id, None)


def _batch(decisions: Iterable[tuple[OwnedJob, Decision]], by_job: dict[str, list[Arrival]]) -> RoundBatch:
    batch = RoundBatch()
    for job, decision in decisions:
        batch.add(job, decision, _latest(by_job.get(job.job_id, [])))
    return batch


async def _decide_all(
    conn: Connection,
    affected: dict[str, OwnedJob],
    by_job: dict[str, list[Arrival]],
    kicked: Kicks,
    large: LargeOutputs,
) -> list[tuple[OwnedJob, Decision]]:
    arrived = next((reports[0].now for reports in by_job.values()), None)
    now = arrived or await transaction_time(conn)
    return [
        (job, await _decide(conn, job, by_job.get(job_id, []), kicked, now, large)) for job_id, job in affected.items()
    ]


async def _decide(
    conn: Connection, job: OwnedJob, arrivals: Sequence[Arrival], kicked: Kicks, now: datetime, large: LargeOutputs
) -> Decision:
    try:
        return await _evaluate(conn, job, arrivals, kicked, now, large)
    except psycopg.Error:
        raise
    except Exception:  # a bug that affects one job must not stop the others
        reference = new_reference()
        log.exception("the evaluation of %s failed, reference %s", job.job_id, reference)
        evaluation = Evaluation(job.run, now)
        evaluation.fail(f"internal error: see the log for the reference {reference}")
        return evaluation.decision()


async def _evaluate(
    conn: Connection, job: OwnedJob, arrivals: Sequence[Arrival], kicked: Kicks, now: datetime, large: LargeOutputs
) -> Decision:
    evaluation = Evaluation(job.run, now)
    if job.job_id in kicked.adopted:
        evaluation.carry_on()
    evaluation.feed(outcome for arrival in arrivals for outcome in arrival.outcomes)
    if job.job_id in kicked.more:
        evaluation.send_more()
    await answer_all(conn, job.run, evaluation, large)
    if job.job_id in kicked.overdue:
        evaluation.fail(f"the job did not end within timeout_seconds ({job.run.graph.workflow.timeout_seconds:g} s)")
    return evaluation.decision()


def _by_job(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    by_job: defaultdict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_job[arrival.job_id].append(arrival)
    return dict(by_job)


def _latest(arrivals: Iterable[Arrival]) -> dict[tuple[str, int], Arrival]:
    return {(outcome.node_id, outcome.item_index): arrival for arrival in arrivals for outcome in arrival.outcomes}
