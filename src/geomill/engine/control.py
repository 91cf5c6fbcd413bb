"""The commands of people to jobs: cancel, pause, resume, retry, repeat, release.

Only its owner changes a job under way, so a command is sent to the owner's inbox. A job without an owner is changed
here, in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.domain.engine.attendance import unknown_queue
from geomill.domain.engine.event import EventType
from geomill.domain.engine.graph import compile_graph
from geomill.domain.engine.job import Job, JobPurpose
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.reopening import downstream, reopen, reopen_from
from geomill.domain.engine.task import TaskReport
from geomill.domain.states import JOB_MACHINE, JobStatus
from geomill.engine.claim import new_job
from geomill.engine.submit import submit
from geomill.errors import ConflictError, InputError, NotFoundError, Problem, nearest
from geomill.queues import postgres as queue
from geomill.remedies import KEEP_DETAILS, RETRY_EXPORT
from geomill.store import definitions, events, inbox, jobs, nodes, rounds, stage_jobs
from geomill.store.events import EventWrite
from geomill.store.pool import Connection
from geomill.store.signals import ORPHANS_CHANNEL, notify, owner_channel
from geomill.workflows.registry import WorkflowRegistry


async def cancel(conn: Connection, job_queue: str, job_id: str, reason: str) -> None:
    """Cancel a job that waits, runs or is paused."""
    if not await cancel_waiting(conn, job_queue, job_id, reason):
        await _command(conn, job_id, TaskReport.CANCEL, reason)


async def cancel_waiting(conn: Connection, job_queue: str, job_id: str, reason: str) -> bool:
    """Cancel a job that is not claimed yet. Returns False if it is claimed."""
    waiting = await jobs.waiting(conn, job_queue, job_id)
    return waiting is not None and await _cancel_waiting(conn, job_queue, waiting, reason)


async def pause(conn: Connection, job_id: str) -> None:
    """Pause a job. Running tasks go on, no new ones begin."""
    await _command(conn, job_id, TaskReport.PAUSE, "paused")


async def resume(conn: Connection, job_id: str) -> None:
    await _command(conn, job_id, TaskReport.RESUME, "resumed")


async def retry(conn: Connection, job_id: str, from_node: str | None = None) -> Job:
    """Run the nodes and items again that failed or never ran. Completed ones keep their outputs. With `from_node`, this
    node and all nodes after it run again, too."""
    async with conn.transaction():
        job = await jobs.lock(conn, job_id)
        definition_hash = await _retried_definition(conn, job)
        graph = compile_graph(await definitions.get(conn, definition_hash))
        rows = await nodes.of_job(conn, job_id)
        if from_node is None:
            await nodes.reopen(conn, job_id, reopen(graph, rows))
        else:
            if from_node not in graph.nodes:
                problem = Problem("from_node", f"the job has no node '{from_node}'", nearest(from_node, graph.nodes))
                raise InputError(f"the retry is wrong: {problem}", problems=[problem])
            begun_again, others = reopen_from(graph, rows, downstream(graph, from_node))
            await nodes.begin_anew(conn, job_id, begun_again)
            await nodes.reopen(conn, job_id, others)
        await jobs.reopen(conn, job_id)
        data = {"from_node": from_node} if from_node else None
        await events.insert(conn, [EventWrite(job_id, EventType.JOB_RETRIED, data=data)])
    await notify(conn, [ORPHANS_CHANNEL])
    return await jobs.get(conn, job_id)


async def _retried_definition(conn: Connection, job: Job) -> str:
    """Return the hash of the job's definition. Raises `ConflictError` if the job cannot be retried."""
    job_id = job.job_id
    if job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise ConflictError(f"the job {job_id} is {job.status.value}", remedy="retry only failed or cancelled jobs")
    if job.purpose in (JobPurpose.EXPORT, JobPurpose.WITHDRAW):
        raise ConflictError(
            f"the job {job_id} exports or withdraws the asset {job.asset_id}, whose state may have changed since",
            remedy=RETRY_EXPORT.shell,
        )
    if job.details_deleted_at:
        raise ConflictError(
            f"the job {job_id} cannot be retried: {job.details_gone}",
            remedy=KEEP_DETAILS.shell,
        )
    if await stage_jobs.superseded(conn, job_id):
        raise ConflictError(f"a later attempt has replaced the job {job_id}", remedy="retry the later attempt")
    if job.definition_hash is None:
        raise ConflictError(f"the job {job_id} never began: {job.error_message}", remedy="submit it again")
    return job.definition_hash


async def repeat(
    conn: Connection,
    workflow_registry: WorkflowRegistry,
    job_queue: str,
    job_id: str,
    changed_inputs: Mapping[str, Any],
    submitted_by: str,
) -> JobQueueMessage:
    """Submit a new job that repeats an ended one with some inputs changed. It is checked as every submission of an
    operator is, against the workflow as it is now."""
    job = await jobs.get(conn, job_id)
    if job.status not in JOB_MACHINE.terminal:
        raise ConflictError(f"the job {job_id} is {job.status.value}", remedy="wait for its end, or cancel it first")
    if job.asset_id is not None:
        raise ConflictError(
            f"the job {job_id} works for the asset {job.asset_id}, whose inputs follow from a submission",
            remedy="submit the data again with overwrite=true",
        )
    if await stage_jobs.of_run(conn, job_id):
        raise ConflictError(
            f"the job {job_id} is an attempt at a stage job, which is named by its parameters",
            remedy="submit the stage job with other parameters",
        )
    message = JobQueueMessage(
        workflow_id=job.workflow_id,
        input_params={**job.input_params, **changed_inputs},
        priority=job.priority,
        correlation_id=job.correlation_id,
        callback_url=job.callback_url,
        submitted_by=submitted_by,
        retry_of=job_id,
    )
    return await submit(conn, workflow_registry, job_queue, message)


async def release(conn: Connection, job_id: str, released_by: str) -> None:
    """Release a parked job, so that an orchestrator takes it over. It is parked again if the database still refuses
    its decisions."""
    async with conn.transaction():
        job = await jobs.lock(conn, job_id)
        if not await jobs.release_parked(conn, job_id, released_by):
            raise ConflictError(f"the job {job_id} is not parked: it is {job.status.value}")
    await notify(conn, [ORPHANS_CHANNEL])


async def _command(conn: Connection, job_id: str, report: TaskReport, reason: str) -> None:
    owner = await inbox.command(conn, job_id, report, reason)
    if owner is None:
        job = await jobs.get(conn, job_id)
        if job.status in JOB_MACHINE.terminal:
            raise ConflictError(f"the job {job_id} has already ended: it is {job.status.value}")
        owner = await inbox.command(conn, job_id, report, reason) or ""  # it was claimed between the two queries
    await notify(conn, [owner_channel(owner)])


async def _cancel_waiting(conn: Connection, job_queue: str, message: JobQueueMessage, reason: str) -> bool:
    """Cancel a submission. Returns False if an orchestrator has claimed it meanwhile."""
    async with conn.transaction():
        places = [(name, message.job_id) for name in (job_queue, unknown_queue(job_queue))]
        if not await queue.withdraw(conn, places):
            return False
        job = new_job(message, JobStatus.CANCELLED, error_message=reason)
        if not await rounds.create(conn, [job]):
            raise NotFoundError(f"the job {message.job_id} is a duplicate of another one")
        await events.insert(conn, [EventWrite(message.job_id, EventType.JOB_CANCELLED)])
    return True
