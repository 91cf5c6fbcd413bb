"""From a message on the jobs queue to a job that this orchestrator owns, in one transaction with its completion.

A submission that cannot become a job is dead-lettered with the reason, and its submitter finds a failed job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import psycopg
from pydantic import ValidationError

from geomill.domain.evaluator import Evaluation
from geomill.domain.event import EventStatus, EventType
from geomill.domain.inputs import validate_inputs
from geomill.domain.jsonvalue import to_json
from geomill.domain.message import JobQueueMessage
from geomill.domain.run import RunState
from geomill.domain.states import JOB_MACHINE, JobStatus
from geomill.domain.workflow import Workflow
from geomill.engine.aggregation import answer_all
from geomill.engine.batch import Batch, job_write
from geomill.engine.owned import Graphs, OwnedJob
from geomill.errors import GeomillError, InputsError, NotFoundError
from geomill.queues import postgres as queue
from geomill.queues.postgres import Received
from geomill.store import definitions, jobs
from geomill.store.events import EventWrite
from geomill.store.pool import Connection, transaction_time
from geomill.workflows.catalogue import WorkflowCatalogue

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Claimed:
    jobs: list[OwnedJob] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    taken: int = 0


@dataclass
class Claimer:
    owner_id: str
    queue_name: str
    catalogue: WorkflowCatalogue
    graphs: Graphs
    _pinned: set[str] = field(default_factory=set)

    async def claim(self, conn: Connection, limit: int, older_than: float = 0.0) -> Claimed:
        """The jobs that are now ours and unfinished, and what was written for them."""
        try:
            return await self._claim(conn, limit, older_than)
        except psycopg.OperationalError:
            raise
        except Exception as error:  # one submission must not stop all the others
            if limit > 1:
                return await self.claim(conn, 1, older_than)
            log.exception("a submission could not be claimed")
            return await self._bury_next(conn, f"{type(error).__name__}: {error}")

    async def _bury_next(self, conn: Connection, reason: str) -> Claimed:
        async with conn.transaction():
            received = await queue.take(conn, self.queue_name, 1)
            for message in received:
                await self._refuse(conn, message, "InternalError", reason)
        return Claimed(taken=len(received))

    async def _claim(self, conn: Connection, limit: int, older_than: float) -> Claimed:
        batch = Batch()
        async with conn.transaction():
            received = await queue.take(conn, self.queue_name, limit, older_than)
            claimed = [await self._admit(conn, message, batch) for message in received]
            await batch.write(conn)
        return Claimed([job for job in claimed if job is not None], batch.queues, len(received))

    async def _admit(self, conn: Connection, received: Received, batch: Batch) -> OwnedJob | None:
        try:
            message = JobQueueMessage.model_validate(received.body)
        except ValidationError as error:
            await self._refuse(conn, received, "MalformedMessage", str(error.errors()[0]["msg"]))
            return None
        try:
            workflow = self.catalogue.get(message.workflow_id)
            inputs = validate_inputs(workflow, message.input_params)
        except NotFoundError as error:
            await self._refuse(conn, received, "WorkflowNotFound", str(error))
            await self._record_refusal(conn, message, error, batch)
            return None
        except InputsError as error:
            await self._refuse(conn, received, "InvalidInputs", str(error))
            await self._record_refusal(conn, message, error, batch)
            return None
        return await self._create(conn, message, workflow, inputs, batch)

    async def _create(
        self, conn: Connection, message: JobQueueMessage, workflow: Workflow, inputs: dict[str, Any], batch: Batch
    ) -> OwnedJob | None:
        definition_hash = workflow.hash()
        if definition_hash not in self._pinned:
            await definitions.insert(conn, workflow, definition_hash)
            self._pinned.add(definition_hash)
        run = RunState.begin(self.graphs.of(workflow, definition_hash), message.job_id, inputs)
        job = OwnedJob(run, epoch=1, priority=message.priority)
        evaluation = Evaluation(run, await transaction_time(conn))
        evaluation.begin()
        await answer_all(conn, run, evaluation)
        decision = evaluation.decision()
        row = job_row(message, self.owner_id, inputs, decision.status)
        row |= {
            "workflow_version": workflow.version,
            "definition_hash": definition_hash,
            "timeout_seconds": workflow.timeout_seconds,
        }
        write = job_write(message.job_id, decision)
        row |= {"result_data": write.result, "error_message": write.error, "failed_node_id": write.failed_node}
        if not await jobs.create(conn, row):
            return None  # a duplicate: the job is there already, and so is its owner
        batch.events.append(EventWrite(message.job_id, EventType.JOB_CREATED, data={"workflow": workflow.workflow_id}))
        batch.add_new(job, decision)
        run.apply(decision)
        return None if decision.status in JOB_MACHINE.terminal else job

    async def _refuse(self, conn: Connection, received: Received, reason: str, description: str) -> None:
        await queue.dead_letter(conn, self.queue_name, received, reason, description)

    async def _record_refusal(
        self, conn: Connection, message: JobQueueMessage, error: GeomillError, batch: Batch
    ) -> None:
        row = job_row(message, self.owner_id, message.input_params, JobStatus.FAILED) | {"error_message": str(error)}
        if await jobs.create(conn, row):
            data = {"error": str(error)}
            batch.events.append(EventWrite(message.job_id, EventType.JOB_FAILED, EventStatus.FAILURE, data=data))


def job_row(
    message: JobQueueMessage, owner_id: str | None, inputs: dict[str, Any], status: JobStatus
) -> dict[str, Any]:
    """The columns of a new job."""
    return {
        "job_id": message.job_id,
        "workflow_id": message.workflow_id,
        "workflow_version": None,
        "definition_hash": None,
        "status": status.value,
        "input_params": to_json(inputs),
        "result_data": None,
        "error_message": None,
        "failed_node_id": None,
        "owner_id": owner_id,
        "priority": message.priority,
        "correlation_id": message.correlation_id,
        "submitted_by": message.submitted_by,
        "callback_url": message.callback_url,
        "idempotency_key": message.idempotency_key,
        "submitted_at": message.submitted_at,
        "timeout_seconds": None,
    }
