"""Submits stage jobs. An equal request is the same job while the job runs and after it has completed.

After a failure or a cancellation the job starts again from its first stage, with the current code, as a new attempt
under the same id. Earlier attempts stay as they were. To continue where an attempt failed, retry the attempt instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.stage_job import StageJobOrder, StageRun, StageStatus
from geomill.domain.engine.starting import Starter, require_free_names
from geomill.domain.states import JobStatus
from geomill.engine.submit import enqueue
from geomill.stages.registry import StageJobs
from geomill.store import jobs, stage_jobs
from geomill.store.pool import Connection
from geomill.store.signals import notify, queue_channel
from geomill.store.stage_jobs import StageJobAttempt
from geomill.workflows.registry import WorkflowRegistry


@dataclass(frozen=True)
class Submitted:
    run: StageRun
    status: StageStatus
    is_new: bool


async def submit(
    conn: Connection, job_types: StageJobs, workflow_registry: WorkflowRegistry, queue_name: str, order: StageJobOrder
) -> Submitted:
    """Submit a stage job. Raises `NotFoundError` or `InputError` before anything is written. Its row and message are
    one transaction."""
    job = job_types[order.job_type]
    parameters = job.validate(order.parameters)
    require_free_names(parameters)
    job_id = job.job_id(parameters)
    async with conn.transaction():
        await stage_jobs.serialise(conn, job_id)
        earlier = await _latest(conn, queue_name, job_id)
        if earlier and earlier.status is not StageStatus.FAILED:
            return Submitted(earlier.run, earlier.status, is_new=False)
        attempt = earlier.run.attempt + 1 if earlier else 1
        inputs = {"job_id": job_id, "attempt": attempt, "parameters": parameters}
        message = JobQueueMessage(**{**order.terms(), "workflow_id": job.workflow_id, "input_params": inputs})
        await enqueue(conn, workflow_registry, queue_name, [message], Starter.OPERATORS)
        run = await stage_jobs.add(
            conn,
            job_id=job_id,
            attempt=attempt,
            run_id=message.job_id,
            job_type=job.job_type,
            parameters=parameters,
            submitted_by=order.submitted_by,
        )
    await notify(conn, [queue_channel(queue_name)])
    return Submitted(run, StageStatus.QUEUED, is_new=True)


async def _latest(conn: Connection, queue_name: str, job_id: str) -> StageJobAttempt | None:
    """Return the latest attempt. A failed one is locked, so that nobody retries it while a new attempt replaces it."""
    attempts = await stage_jobs.attempts(conn, queue_name, job_id, limit=1)
    if attempts and attempts[0].job_status in (JobStatus.FAILED, JobStatus.CANCELLED):
        await jobs.lock(conn, attempts[0].run.run_id)
        attempts = await stage_jobs.attempts(conn, queue_name, job_id, limit=1)
    return attempts[0] if attempts else None
