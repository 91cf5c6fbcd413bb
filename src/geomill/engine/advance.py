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

from geomill.domain.decision import Decision
from geomill.domain.evaluator import Evaluation
from geomill.domain.states import JOB_MACHINE
from geomill.engine.aggregation import answer_all
from geomill.engine.batch import Batch
from geomill.engine.owned import OwnedJob
from geomill.store import inbox, jobs
from geomill.store.inbox import Arrival
from geomill.store.pool import Connection

log = logging.getLogger(__name__)

LARGEST_ROUND = 2_000


@dataclass
class Round:
    """What a round did."""

    reports: int = 0
    queues: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


async def advance(conn: Connection, owner_id: str, owned: dict[str, OwnedJob]) -> Round:
    """Apply what has arrived. Jobs that ended or were lost leave `owned`."""
    done = Round()
    decisions: list[tuple[OwnedJob, Decision]] = []
    async with conn.transaction():
        arrivals = await inbox.peek(conn, owner_id, LARGEST_ROUND)
        if not arrivals:
            return done
        done.reports = len(arrivals)
        by_job = _by_job(arrivals)
        mine = await jobs.fence(conn, owner_id, {job_id: owned[job_id].epoch for job_id in by_job if job_id in owned})
        done.lost = by_job.keys() - mine
        batch = Batch()
        for job_id in sorted(mine):
            decision = await _decide(conn, owned[job_id], by_job[job_id])
            batch.add(owned[job_id], decision, _latest(by_job[job_id]))
            decisions.append((owned[job_id], decision))
        await batch.write(conn)
        await inbox.discard(conn, [one.sequence for job_id in mine for one in by_job[job_id]])
    for job, decision in decisions:
        job.run.apply(decision)
        if decision.status in JOB_MACHINE.terminal:
            done.ended.add(job.job_id)
    for job_id in done.lost | done.ended:
        owned.pop(job_id, None)
    done.queues = batch.queues
    return done


async def _decide(conn: Connection, job: OwnedJob, arrivals: Sequence[Arrival]) -> Decision:
    evaluation = Evaluation(job.run, arrivals[0].now)
    evaluation.feed(arrival.outcome for arrival in arrivals)
    await answer_all(conn, job.run, evaluation)
    return evaluation.decision()


def _by_job(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    found: defaultdict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        found[arrival.job_id].append(arrival)
    return dict(found)


def _latest(arrivals: Iterable[Arrival]) -> dict[tuple[str, int], Arrival]:
    return {(one.outcome.node_id, one.outcome.item_index): one for one in arrivals}
