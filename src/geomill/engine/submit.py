"""Submits jobs. They are checked first, so that a refused submission leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from geomill.domain.engine.callback import check_callback_url
from geomill.domain.engine.inputs import validate_inputs
from geomill.domain.engine.job import JobOrder
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.repetition import differing, key_conflict, key_taken
from geomill.domain.engine.starting import Starter, require_free_names, require_starter
from geomill.domain.jsonvalue import to_json
from geomill.errors import InputsError
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.store.pool import Connection
from geomill.store.signals import queue_channel
from geomill.workflows.registry import WorkflowRegistry


async def submit(
    conn: Connection, workflow_registry: WorkflowRegistry, queue_name: str, message: JobQueueMessage
) -> JobQueueMessage:
    """Submit a job without an asset, as an operator. Opens its own transaction. Raises `NotFoundError`, `Forbidden` or
    `InputError` before anything is written. Returns the message with the time of its submission."""
    check_plain(workflow_registry, message)
    sent_at = await queue.hand_in(conn, _outgoing(queue_name, message), queue_channel(queue_name))
    return message.model_copy(update={"submitted_at": message.submitted_at or sent_at})


async def enqueue(
    conn: Connection,
    workflow_registry: WorkflowRegistry,
    queue_name: str,
    messages: Sequence[JobQueueMessage],
    starter: Starter,
) -> None:
    """Submit all jobs or none, in the caller's transaction. The caller notifies the queue after the commit."""
    for message in messages:
        _check(workflow_registry, message, starter)
    await queue.send(conn, [_outgoing(queue_name, message) for message in messages])


def check_plain(workflow_registry: WorkflowRegistry, message: JobQueueMessage) -> None:
    """Check a job without an asset, from a route, a command or a schedule."""
    require_free_names(message.input_params)
    _check(workflow_registry, message, Starter.OPERATORS)


def require_repetition(workflow_registry: WorkflowRegistry, first: JobOrder, again: JobOrder) -> None:
    """Raise `ConflictError` unless a job's submission repeats the first one with its idempotency key. Inputs are
    compared with their defaults. The correlation id, the submitter and the person named may differ."""
    names = differing(
        _compared(workflow_registry, first), _compared(workflow_registry, again), _compared_names(first, again)
    )
    if names and first.submitted_by != again.submitted_by:
        raise key_taken("job")
    if names:
        raise key_conflict(names, what="job")


def _compared_names(first: JobOrder, again: JobOrder) -> tuple[str, ...]:
    """Return the fields to compare. Inputs of different workflows are not compared."""
    inputs = ("input_params",) if first.workflow_id == again.workflow_id else ()
    return ("workflow_id", *inputs, "priority", "callback_url")


def _compared(workflow_registry: WorkflowRegistry, order: JobOrder) -> dict[str, Any]:
    workflow = workflow_registry.find(order.workflow_id)
    inputs = order.input_params
    with suppress(InputsError):  # invalid inputs differ from any that were accepted
        inputs = validate_inputs(workflow, inputs) if workflow else inputs
    return {**vars(order), "input_params": inputs}


def _check(workflow_registry: WorkflowRegistry, message: JobQueueMessage, starter: Starter) -> None:
    workflow = workflow_registry.get(message.workflow_id)
    require_starter(workflow.workflow_id, workflow.started_by, starter)
    validate_inputs(workflow, message.input_params)
    check_callback_url(message.callback_url)


def _outgoing(queue_name: str, message: JobQueueMessage) -> Outgoing:
    body = to_json(message.model_dump(mode="json"))
    return Outgoing(queue_name, message.job_id, body, message.priority, tenant=message.tenant)
