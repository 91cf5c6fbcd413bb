"""One round of an orchestrator: reports in, decisions out, for all its jobs at once, in one fenced transaction.

    peek the inbox → evaluate in memory → lock and check the jobs → write everything → commit → apply in memory

A job that fails the fence belongs to somebody else by now: nothing is written for it, its reports stay for the new
owner, and it is dropped here.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from geomill.domain.decision import Decision
from geomill.domain.evaluator import Evaluation
from geomill.domain.states import JOB_MACHINE
from geomill.engine.aggregation import answer_all
from geomill.engine.batch import Batch
from geomill.engine.owned import OwnedJob
from geomill.store import inbox, jobs
from geomill.store.inbox import Arrival
from geomill.store.pool import Connection, transaction_time

log = logging.getLogger(__name__)

LARGEST_ROUND = 2_000


@dataclass
class Round:
    """What a round did."""

    reports: int = 0
    queues: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    """Ours by the database, but not in memory."""


@dataclass
class Kicks:
    """Jobs that need a decision although no report came: taken over, or past their deadline."""

    taken: set[str] = field(default_factory=set)
    overdue: set[str] = field(default_factory=set)

    def take(self) -> Kicks:
        taken = Kicks(self.taken, self.overdue)
        self.taken, self.overdue = set(), set()
        return taken

    def __bool__(self) -> bool:
        return bool(self.taken or self.overdue)


async def advance(
    conn: Connection, owner_id: str, owned: dict[str, OwnedJob], kicks: Kicks, limit: int = LARGEST_ROUND
) -> Round:
    """Apply what has arrived. Jobs that ended or were lost leave `owned`."""
    done = Round()
    decisions: list[tuple[OwnedJob, Decision]] = []
    async with conn.transaction():
        arrivals = await inbox.peek(conn, owner_id, limit)
        kicked = kicks.take()
        if not arrivals and not kicked:
            return done
        done.reports = len(arrivals)
        by_job = _by_job(arrivals)
        concerned = by_job.keys() | kicked.taken | kicked.overdue
        epochs = {job_id: owned[job_id].epoch for job_id in concerned if job_id in owned}
        mine = await jobs.fence(conn, owner_id, epochs)
        done.lost = concerned - mine
        now = arrivals[0].now if arrivals else await transaction_time(conn)
        batch = Batch()
        for job_id in sorted(mine):
            job, reports = owned[job_id], by_job.get(job_id, [])
            decision = await _decide(conn, job, reports, kicked, now)
            batch.add(job, decision, _latest(reports))
            decisions.append((job, decision))
        await batch.write(conn)
        await inbox.discard(conn, [one.sequence for job_id in mine for one in by_job.get(job_id, [])])
        done.unknown = await inbox.forward(conn, owner_id, done.lost)
    for job, decision in decisions:
        job.run.apply(decision)
        if decision.status in JOB_MACHINE.terminal:
            done.ended.add(job.job_id)
    for job_id in done.lost | done.ended:
        owned.pop(job_id, None)
    done.queues = batch.queues
    return done


async def _decide(
    conn: Connection, job: OwnedJob, arrivals: Sequence[Arrival], kicked: Kicks, now: datetime
) -> Decision:
    try:
        return await _evaluate(conn, job, arrivals, kicked, now)
    except psycopg.Error:
        raise
    except Exception as error:  # a mistake of ours with one job must not stop all the others
        log.exception("the evaluation of %s failed", job.job_id)
        evaluation = Evaluation(job.run, now)
        evaluation.fail(f"internal error: {type(error).__name__}: {error}")
        return evaluation.decision()


async def _evaluate(
    conn: Connection, job: OwnedJob, arrivals: Sequence[Arrival], kicked: Kicks, now: datetime
) -> Decision:
    evaluation = Evaluation(job.run, now)
    if job.job_id in kicked.taken:
        evaluation.carry_on()
    evaluation.feed(arrival.outcome for arrival in arrivals)
    await answer_all(conn, job.run, evaluation)
    if job.job_id in kicked.overdue:
        evaluation.fail(f"the job did not end within timeout_seconds ({job.run.graph.workflow.timeout_seconds:g} s)")
    return evaluation.decision()


def _by_job(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    found: defaultdict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        found[arrival.job_id].append(arrival)
    return dict(found)


def _latest(arrivals: Iterable[Arrival]) -> dict[tuple[str, int], Arrival]:
    return {(one.outcome.node_id, one.outcome.item_index): one for one in arrivals}
