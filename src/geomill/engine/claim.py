"""Claims submissions: one transaction takes them from the queue and creates jobs that this orchestrator owns.

A submission that cannot become a job is dead-lettered with the reason, and its submitter finds a failed job. A
submission whose workflow this orchestrator does not know is put aside, because another orchestrator or a later version
may know it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
from pydantic import ValidationError

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.decision import Decision
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.event import EventStatus, EventType
from geomill.domain.engine.inputs import validate_inputs
from geomill.domain.engine.job import NewJob
from geomill.domain.engine.message import JobQueueMessage, malformed
from geomill.domain.engine.run import RunState
from geomill.domain.engine.workflow import WORKFLOW_ID, Workflow
from geomill.domain.states import JOB_MACHINE, JobStatus
from geomill.engine.aggregation import answer_all
from geomill.engine.batch import RoundBatch, job_write
from geomill.engine.owned import Graphs, OwnedJob
from geomill.errors import InputsError
from geomill.queues import postgres as queue
from geomill.queues.floors import Floors
from geomill.queues.postgres import Received
from geomill.queues.turns import TenantTurns
from geomill.store import attendance, definitions, rounds
from geomill.store.events import EventWrite
from geomill.store.locking import impatient
from geomill.store.passing import passes
from geomill.store.pool import Connection
from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)

LOCKED_SECONDS = 1.0
"""How long a submission waits if a row that it needs is locked."""
FEW = 3
"""The maximum number of submissions that are claimed with one statement instead of a transaction."""


@dataclass(frozen=True)
class Claimed:
    jobs: list[OwnedJob] = field(default_factory=list)
    more: set[str] = field(default_factory=set)
    """The jobs that have more items to send."""
    messages: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds that each submission waited in the queue."""
    dispatched: int = 0
    """Tasks that were sent with the claim."""
    batches: list[RoundBatch] = field(default_factory=list)
    """The batches that were written. Their tasks need permits where Service Bus delivers them."""

    def and_also(self, other: Claimed) -> Claimed:
        messages, waits = self.messages + other.messages, [*self.waits, *other.waits]
        dispatched, batches = self.dispatched + other.dispatched, [*self.batches, *other.batches]
        return Claimed([*self.jobs, *other.jobs], self.more | other.more, messages, waits, dispatched, batches)


@dataclass
class Claimer:
    owner_id: str
    queue_name: str
    workflow_registry: WorkflowRegistry
    graphs: Graphs
    _pinned: set[str] = field(default_factory=set)
    _turns: TenantTurns = field(default_factory=TenantTurns)
    _floors: Floors = field(default_factory=Floors)
    _hashes: dict[str, tuple[Workflow, str]] = field(default_factory=dict)

    async def claim(self, conn: Connection, limit: int, older_than: float = 0.0) -> Claimed:
        """Claim submissions. Returns the unfinished jobs that this orchestrator now owns."""
        try:
            return await self._claim(conn, limit, older_than)
        except psycopg.errors.LockNotAvailable:
            return await self._claim_each(conn, limit)
        except _UnknownWorkflows as unknown:  # the rollback has returned all submissions to the queue
            moved = await attendance.put_aside(conn, self.queue_name, unknown.sequences)
            return Claimed(messages=limit if moved else 0)  # if none were moved, another orchestrator has them
        except Exception as error:  # one submission must not stop all the others
            if passes(error):
                raise
            if limit > 1:
                return await self.claim(conn, 1, older_than)
            reference = new_reference()
            log.exception("a submission could not be claimed, reference %s", reference)
            return await self._bury_next(conn, f"internal error: see the log for the reference {reference}")

    async def _claim_each(self, conn: Connection, limit: int) -> Claimed:
        """Claim submissions one by one, after a row that one of them needs was locked. That submission waits for a
        moment, and the others are claimed."""
        claimed = Claimed()
        async with impatient(conn):
            for message in await queue.look(conn, self.queue_name, limit):
                try:
                    part = await self._claim_these(conn, [message])
                except psycopg.errors.LockNotAvailable:
                    log.warning("rows of the submission %s are locked: the others go on", message.message_id)
                    await queue.postpone(conn, message.sequence, LOCKED_SECONDS)
                except Exception as error:  # the next claim that meets no lock deals with it
                    if passes(error):
                        raise
                    log.warning("the submission %s is left for later: %s", message.message_id, error)
                else:
                    claimed = claimed.and_also(part or Claimed())
        return claimed

    async def _bury_next(self, conn: Connection, reason: str) -> Claimed:
        async with conn.transaction():
            received = await queue.take(conn, self.queue_name, 1, turns=self._turns)
            for message in received:
                await queue.dead_letter(conn, self.queue_name, message, "InternalError", reason)
        self._turns.given([self.queue_name])
        return Claimed(messages=len(received))

    async def _claim(self, conn: Connection, limit: int, older_than: float) -> Claimed:
        few = not older_than and not self._floors.bounded(self.queue_name)
        claimed = await self._claim_few(conn, min(limit, FEW)) if few else None
        return claimed or await self._claim_many(conn, limit, older_than)

    async def _claim_few(self, conn: Connection, limit: int) -> Claimed | None:
        """Claim a few submissions as a round is made: read, decide, write. This takes two round trips, where a
        transaction takes five. Returns None if it did not succeed, because there are more submissions, one must be
        refused, or another orchestrator was faster."""
        waiting = await queue.look(conn, self.queue_name, limit + 1, self._floors)
        if not waiting:
            return Claimed()
        if len(waiting) > limit:
            return None
        return await self._claim_these(conn, waiting)

    async def _claim_these(self, conn: Connection, waiting: Sequence[Received]) -> Claimed | None:
        """Claim these submissions. Returns None if one of them must be refused or is no longer in the queue."""
        admitted = await self._admit_all(conn, waiting)
        if any(admission.refusal for admission in admitted):
            return None
        self._pinned |= await self._pin(conn, admitted)
        new = [admission.job for admission in admitted if admission.job]
        batch = RoundBatch()
        for admission in admitted:
            admission.enter(batch)
        try:
            if not await rounds.claim(conn, [message.sequence for message in waiting], new, batch):
                return None
        except psycopg.errors.UniqueViolation:
            return None  # the job exists already
        return _claimed(admitted, {job.job_id for job in new}, batch)

    async def _claim_many(self, conn: Connection, limit: int, older_than: float) -> Claimed:
        async with conn.transaction():
            turns, floors = self._turns, self._floors
            received = await queue.take(conn, self.queue_name, limit, older_than, turns=turns, floors=floors)
            if not received:
                return Claimed()
            admitted = await self._admit_all(conn, received)
            pinned = await self._pin(conn, admitted)
            created = await rounds.create(conn, [admission.job for admission in admitted if admission.job])
            batch = RoundBatch()
            for admission in admitted:
                if admission.refusal:
                    await queue.dead_letter(conn, self.queue_name, admission.received, *admission.refusal)
                if admission.job and admission.job.job_id in created:
                    admission.enter(batch)  # otherwise it is malformed, or a duplicate of an existing job
            await rounds.write_new(conn, self.owner_id, batch)
        self._pinned |= pinned
        self._turns.given([self.queue_name])
        return _claimed(admitted, created, batch)

    async def _admit_all(self, conn: Connection, messages: Sequence[Received]) -> list[_Admitted]:
        """Decide about each submission. Raises `_UnknownWorkflows`, which rolls back, if the workflow of one is
        unknown."""
        admitted = [await self._admit(conn, message) for message in messages]
        if unknown := [admission.received.sequence for admission in admitted if admission.left]:
            raise _UnknownWorkflows(unknown)
        return admitted

    async def _admit(self, conn: Connection, received: Received) -> _Admitted:
        """Decide about a submission. A malformed one gets no job. `create` detects duplicates."""
        try:
            message = JobQueueMessage.received(received.body, received.enqueued_at)
        except ValidationError as error:
            return _Admitted(received, refusal=("MalformedMessage", malformed(error)))
        workflow = self.workflow_registry.find(message.workflow_id)
        if workflow is None:
            return self._not_known(received, message)
        try:
            inputs = validate_inputs(workflow, message.input_params)
        except InputsError as error:
            return self._refused(received, message, "InvalidInputs", str(error))
        return await self._begin(conn, received, message, workflow, inputs)

    def _not_known(self, received: Received, message: JobQueueMessage) -> _Admitted:
        if re.match(WORKFLOW_ID, message.workflow_id):
            return _Admitted(received, left=True)
        reason = f"'{message.workflow_id}' is not a valid workflow id"
        return self._refused(received, message, "WorkflowNotFound", reason)

    def _refused(self, received: Received, message: JobQueueMessage, reason: str, text: str) -> _Admitted:
        job = new_job(message, JobStatus.FAILED, owner_id=self.owner_id, error_message=text)
        return _Admitted(received, job, refusal=(reason, text))

    async def _begin(
        self, conn: Connection, received: Received, message: JobQueueMessage, workflow: Workflow, inputs: dict[str, Any]
    ) -> _Admitted:
        definition_hash = self._hash(workflow)
        run = RunState.begin(self.graphs.of(workflow, definition_hash), message.job_id, inputs)
        evaluation = Evaluation(run, received.now)
        evaluation.begin()
        await answer_all(conn, run, evaluation)
        decision = evaluation.decision()
        verdict = job_write(message.job_id, decision)
        job = new_job(
            message,
            decision.status,
            owner_id=self.owner_id,
            input_params=inputs,
            workflow_version=workflow.version,
            definition_hash=definition_hash,
            deadline_at=_deadline(workflow, received.now),
            result_data=verdict.result,
            error_message=verdict.error,
            failed_node_id=verdict.failed_node,
        )
        return _Admitted(received, job, _owned(run, message), decision)

    def _hash(self, workflow: Workflow) -> str:
        entry = self._hashes.get(workflow.workflow_id)
        if entry is None or entry[0] is not workflow:
            entry = self._hashes[workflow.workflow_id] = (workflow, workflow.hash())
        return entry[1]

    async def _pin(self, conn: Connection, admitted: list[_Admitted]) -> set[str]:
        """Store the definitions that this process has not stored yet."""
        graphs = [admission.owned.run.graph for admission in admitted if admission.owned]
        unpinned = {g.definition_hash: g.workflow for g in graphs if g.definition_hash not in self._pinned}
        for definition_hash, workflow in unpinned.items():
            await definitions.insert(conn, workflow, definition_hash)
        return set(unpinned)


class _UnknownWorkflows(Exception):  # noqa: N818  not an error: others may know them
    def __init__(self, sequences: list[int]) -> None:
        super().__init__(sequences)
        self.sequences = sequences


@dataclass(frozen=True)
class _Admitted:
    """A submission and what becomes of it: an owned job, or a dead letter and a failed job."""

    received: Received
    job: NewJob | None = None
    owned: OwnedJob | None = None
    decision: Decision | None = None
    refusal: tuple[str, str] | None = None
    left: bool = False
    """Whether it is left to an orchestrator that knows its workflow."""

    def enter(self, batch: RoundBatch) -> None:
        """Add the rows of the new job to the batch."""
        if self.job is None:
            return
        if self.owned and self.decision:
            data = {"workflow": self.job.workflow_id}
            batch.events.append(EventWrite(self.job.job_id, EventType.JOB_CREATED, data=data))
            batch.add_new(self.owned, self.decision)
        else:
            reason = {"error": self.job.error_message}
            batch.events.append(EventWrite(self.job.job_id, EventType.JOB_FAILED, EventStatus.FAILURE, data=reason))

    def apply(self) -> OwnedJob | None:
        """Apply the committed decision to memory. Returns None if the job has ended or was refused."""
        if self.owned is None or self.decision is None:
            return None
        self.owned.run.apply(self.decision)
        return None if self.decision.status in JOB_MACHINE.terminal else self.owned


def _claimed(admitted: list[_Admitted], created: set[str], batch: RoundBatch) -> Claimed:
    """Apply the decisions after the commit, and return the unfinished jobs."""
    owned = [admission.apply() for admission in admitted if admission.job and admission.job.job_id in created]
    busy = [admission for admission in admitted if admission.decision and admission.decision.more]
    more = {admission.job.job_id for admission in busy if admission.job}
    waits = [(admission.received.now - admission.received.enqueued_at).total_seconds() for admission in admitted]
    decisions = [admission.decision for admission in admitted if admission.job and admission.job.job_id in created]
    dispatched = sum(len(decision.dispatches) for decision in decisions if decision)
    jobs = [job for job in owned if job is not None]
    return Claimed(jobs, more & created, len(admitted), waits, dispatched, [batch])


def _owned(run: RunState, message: JobQueueMessage) -> OwnedJob:
    has_asset = message.asset_id is not None
    return OwnedJob(run, epoch=1, priority=message.priority, tenant=message.tenant, has_asset=has_asset)


def _deadline(workflow: Workflow, now: datetime) -> datetime | None:
    return now + timedelta(seconds=workflow.timeout_seconds) if workflow.timeout_seconds else None


def new_job(message: JobQueueMessage, status: JobStatus, **decided: Any) -> NewJob:
    """Return the job that a submission orders, with the decided fields."""
    return NewJob(**{**vars(message), "status": status, **decided})
