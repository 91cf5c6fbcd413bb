"""Hands a job in: checked first, so that what is refused leaves nothing behind."""

from __future__ import annotations

from typing import Any

from geomill.domain.callback import check_callback_url
from geomill.domain.inputs import validate_inputs
from geomill.domain.jsonvalue import to_json
from geomill.domain.message import JobQueueMessage
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.store.pool import Connection
from geomill.store.signals import notify, queue_channel
from geomill.workflows.catalogue import WorkflowCatalogue


async def submit(
    conn: Connection, catalogue: WorkflowCatalogue, queue_name: str, message: JobQueueMessage
) -> JobQueueMessage:
    """Raises `NotFoundError` or `InputError` before anything is written. The job's id is known from now on."""
    validate_inputs(catalogue.get(message.workflow_id), message.input_params)
    check_callback_url(message.callback_url)
    body: dict[str, Any] = message.model_dump(mode="json")
    async with conn.transaction():
        await queue.send(conn, [Outgoing(queue_name, message.job_id, to_json(body), message.priority)])
    await notify(conn, [queue_channel(queue_name)])
    return message
