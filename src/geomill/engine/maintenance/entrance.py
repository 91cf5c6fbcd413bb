"""Takes submissions that other applications send to Service Bus, into the queue in the database.

    receive ─► check ─► a row of `dag_queue` ─► complete
                 └────► a dead letter in the database, and one in Service Bus, with the same reason

The message is settled only after the row is written, so a crash costs a redelivery. A message without a job id gets one
that follows from its message id, so a redelivery is the same job. Another submission with an id that is taken is
refused: its sender would wait for a job that nobody makes. Whoever may send to the queue counts as an operator:
the roles of Service Bus decide who that is.

The refused body is kept as text that no claim accepts, so nobody can send it again from the dead letters without the
checks. Its sender mends it and sends it anew.

Weakness: a message that arrives while the database is away counts a delivery each time. After ten, Service Bus keeps it
as a dead letter of its own. So nothing is received before the database answers.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from pydantic import ValidationError

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.foreign import ForeignSubmission
from geomill.domain.engine.job import JobOrder
from geomill.domain.engine.message import JobQueueMessage, malformed
from geomill.engine.submit import require_repetition, submit
from geomill.errors import BusUnavailable, ConflictError, Forbidden, InputError, NotFoundError, UnavailableError
from geomill.queues import postgres as queue
from geomill.queues.broker import MALFORMED
from geomill.queues.servicebus import Bus
from geomill.queues.servicebus.bus import ANSWER_SECONDS
from geomill.queues.servicebus.problems import bus_error
from geomill.store import jobs
from geomill.store.duties import Duties
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool, transaction_time
from geomill.workflows.registry import WorkflowRegistry

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusReceiver

log = logging.getLogger(__name__)

DUTY = "service_bus_submissions"
WAIT_SECONDS = 5.0
AT_ONCE = 20
PAUSE_SECONDS = 2.0
LARGEST_BODY = 1_048_576
LONGEST_REASON = 1_000
LONGEST_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message can never become a job, in the words of the dead letter."""

    reason: str
    description: str


@dataclass
class Entrance:
    bus: Bus
    pool: Pool
    workflow_registry: WorkflowRegistry
    job_queue: str
    duties: Duties
    _trouble: str = ""

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop."""
        while True:
            try:
                async with self.bus.receiver(self.job_queue) as receiver:
                    while True:
                        await self.run_once(receiver)
                        self._passed()
            except (BusUnavailable, UnavailableError) as error:
                self._failed(error)
            except psycopg.Error as error:
                if not passes(error):
                    raise
                self._failed(error)
            await asyncio.sleep(PAUSE_SECONDS)

    def _passed(self) -> None:
        if self._trouble:
            log.info("submissions are taken from Service Bus again")
        self._trouble = ""
        self.duties.passed(DUTY)

    def _failed(self, error: Exception) -> None:
        """Log each trouble once: Service Bus may be away for hours."""
        trouble = str(error)  # the error itself holds the connection that broke
        if self._trouble != trouble:
            log.warning("submissions cannot be taken from Service Bus, which is tried again: %s", trouble)
        self._trouble = trouble
        self.duties.failed(DUTY, error)

    async def run_once(self, receiver: ServiceBusReceiver) -> int:
        """Take the submissions that wait, or wait a while for some. Returns how many came."""
        async with self.pool.connection() as conn:
            await transaction_time(conn)
        try:
            messages = await receiver.receive_messages(AT_ONCE, max_wait_time=WAIT_SECONDS)
        except Exception as error:
            raise bus_error(self.job_queue, error) from error
        for message in messages:
            await self._settle(receiver, message, await self._take(message))
        return len(messages)

    async def _take(self, message: ServiceBusReceivedMessage) -> Refusal | None:
        """Write the submission, or the reason against it, which is returned."""
        try:
            async with self.pool.connection() as conn:
                if refusal := await self._submit(conn, message):
                    await self._bury(conn, message, refusal)
                return refusal
        except Exception as error:  # one message must not stop all the others
            if passes(error) or isinstance(error, UnavailableError):
                raise
            reference = new_reference()
            log.exception("a submission from Service Bus could not be taken, reference %s", reference)
            return Refusal("InternalError", f"internal error: see the log for the reference {reference}")

    async def _settle(
        self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage, refusal: Refusal | None
    ) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if refusal:
                    description = refusal.description
                    await receiver.dead_letter_message(message, reason=refusal.reason, error_description=description)
                else:
                    await receiver.complete_message(message)
        except Exception as error:  # noqa: BLE001  it comes again, and is the same job or the same dead letter
            log.warning("a submission could not be settled, and will be delivered again: %s", error)

    async def _submit(self, conn: Connection, message: ServiceBusReceivedMessage) -> Refusal | None:
        order = self._read(message)
        if isinstance(order, Refusal):
            return order
        try:
            if first := await self._first(conn, order):
                require_repetition(self.workflow_registry, first, order)
                return None
            await submit(conn, self.workflow_registry, self.job_queue, order)
        except ConflictError as error:
            return Refusal("Conflict", f"the id '{order.job_id}' is taken: {error.message}")
        except NotFoundError as error:
            return Refusal("WorkflowNotFound", error.message)
        except Forbidden as error:
            return Refusal("Forbidden", error.message)
        except InputError as error:
            return Refusal("InvalidInputs", error.message)
        return None

    async def _first(self, conn: Connection, order: JobQueueMessage) -> JobOrder | None:
        """Return the submission that has the id or the key already. It may be claimed between the first two looks."""
        standing = await jobs.waiting(conn, self.job_queue, order.job_id) or await jobs.find(conn, order.job_id)
        if standing or not order.idempotency_key:
            return standing
        return await jobs.by_idempotency_key(conn, order.idempotency_key)

    def _read(self, message: ServiceBusReceivedMessage) -> JobQueueMessage | Refusal:
        try:
            return ForeignSubmission.of(body_of(message)).order(self.job_queue, identity_of(message))
        except ValidationError as error:
            return Refusal(MALFORMED, storable(malformed(error))[:LONGEST_REASON])
        except ValueError as error:
            return Refusal(MALFORMED, f"body: {error}"[:LONGEST_REASON])

    async def _bury(self, conn: Connection, message: ServiceBusReceivedMessage, refusal: Refusal) -> None:
        log.warning("a submission from Service Bus is a dead letter: %s: %s", refusal.reason, refusal.description)
        await queue.refuse_foreign(
            conn, self.job_queue, identity_of(message), shown(message), refusal.reason, refusal.description
        )


def body_of(message: ServiceBusReceivedMessage) -> bytes:
    """Return the body. Raises ValueError if it is no data, or too large."""
    sections = message.body
    if isinstance(sections, str | bytes):
        sections = [sections]
    parts = [part.encode() if isinstance(part, str) else part for part in sections]
    if not all(isinstance(part, bytes) for part in parts):
        raise ValueError("must be text or bytes that are JSON")
    body = b"".join(parts)
    if len(body) > LARGEST_BODY:
        raise ValueError(f"has {len(body):,} bytes, and at most {LARGEST_BODY:,} are allowed")
    return body


def identity_of(message: ServiceBusReceivedMessage) -> str:
    """Return what stays the same when the message is delivered again."""
    return storable(message.message_id or "") or f"number {message.sequence_number}"


def storable(text: str) -> str:
    """Return a text as the database can hold it."""
    return text.encode(errors="replace").decode().replace("\x00", "�")


def shown(message: ServiceBusReceivedMessage) -> str:
    """Return the beginning of the body as text, for people who look at the dead letter."""
    try:
        body = body_of(message)
    except ValueError:
        return ""
    return storable(body[:LONGEST_SHOWN].decode(errors="replace"))
