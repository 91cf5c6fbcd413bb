"""Routes of queues and dead letters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Path, Query

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.contract import queues as contract
from geomill.contract.inputs import Text
from geomill.contract.queues import DeadLetterDetails, MessageView, QueueDepths
from geomill.domain.access.operator_audit import OperatorAction
from geomill.engine.redrive import redrive
from geomill.errors import NotFoundError, nearest
from geomill.queues import inspection
from geomill.queues.broker import Depth
from geomill.queues.postgres_broker import PostgresBroker
from geomill.remedies import LIST_DEAD_LETTERS
from geomill.store import attendance, metrics, operator_audit
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/v1", tags=["queues"], responses=problem_responses(503))

QueueInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
MessageInPath = Annotated[str, Path(max_length=200, pattern=r"^[^\x00]+$")]
QueueInQuery = Annotated[Text | None, Query(description="Only in this queue")]


@router.get("/queues", summary="List the queues")
async def list_queues(gateway: TheGateway) -> contract.QueueList:
    """Lists the configured queues, those that a process serves, and all others that have messages or dead letters."""
    async with gateway.connection() as conn:
        depths = await inspection.depths(conn)
        consumers = await attendance.consumers(conn)
    names = sorted({*_configured(gateway), *depths, *consumers})
    queues = [_depths(name, depths.get(name, Depth()), consumers.get(name, 0)) for name in names]
    return contract.QueueList(queues=queues)


@router.get("/queues/{queue}", summary="Get a queue", responses=problem_responses(404))
async def get_queue(gateway: TheGateway, queue: QueueInPath) -> contract.QueueDetails:
    async with gateway.connection() as conn:
        depth = (await inspection.depths(conn, queue)).get(queue)
        live = [instance for instance in await metrics.instances(conn) if instance.alive]
    serving = [instance.instance_id for instance in live if queue in instance.queues]
    if depth is None and not serving:
        _require_configured(gateway, queue)
    view = _depths(queue, depth or Depth(), len(serving))
    return contract.QueueDetails(**view.model_dump(), instances=serving)


@router.get("/queues/{queue}/messages", summary="Peek at the messages of a queue", responses=problem_responses(404))
async def list_messages(
    gateway: TheGateway, queue: QueueInPath, options: Annotated[contract.PeekOptions, Query()]
) -> contract.MessageList:
    """Lists the messages that will be received next, then those that are scheduled. Takes none of them."""
    async with gateway.connection() as conn:
        messages = await inspection.peek(conn, queue, options.limit + 1)
        if not messages and queue not in await attendance.consumers(conn) and not await inspection.depths(conn, queue):
            _require_configured(gateway, queue)
    listed = [MessageView.model_validate(message) for message in messages[: options.limit]]
    return contract.MessageList(messages=listed, more=len(messages) > options.limit)


@router.get(
    "/queues/{queue}/messages/{message_id}",
    summary="Get a message with its whole body",
    responses=problem_responses(404),
)
async def get_message(gateway: TheGateway, queue: QueueInPath, message_id: MessageInPath) -> MessageView:
    """Returns a message that waits, is scheduled or is leased."""
    async with gateway.connection() as conn:
        message = await inspection.message(conn, queue, message_id)
    if message is None:
        raise NotFoundError(
            f"the queue '{queue}' has no message '{message_id}'", remedy="perhaps it has been handled since"
        )
    return MessageView.model_validate(message)


@router.get("/dead-letters", summary="List dead letters, the latest first")
async def list_dead_letters(
    gateway: TheGateway, filters: Annotated[contract.DeadLetterFilters, Query()]
) -> contract.DeadLetterPage:
    before = cursors.decode_number(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        letters = await inspection.letters(
            conn, queue_name=filters.queue, reason=filters.reason, limit=filters.limit + 1, before=before
        )
    page, more = letters[: filters.limit], len(letters) > filters.limit
    return contract.DeadLetterPage(
        dead_letters=[DeadLetterDetails.model_validate(letter) for letter in page],
        next_cursor=cursors.encode(page[-1].dead_lettered_at, str(page[-1].sequence)) if more else None,
    )


@router.get("/dead-letters/{message_id}", summary="Get a dead letter", responses=problem_responses(404))
async def get_dead_letter(
    gateway: TheGateway, message_id: MessageInPath, queue: QueueInQuery = None
) -> DeadLetterDetails:
    """Returns the latest dead letter with this id, with its whole body."""
    async with gateway.connection() as conn:
        letter = await inspection.letter(conn, message_id, queue)
    if letter is None:
        raise NotFoundError(f"there is no dead letter '{message_id}'", remedy=LIST_DEAD_LETTERS.http)
    return DeadLetterDetails.model_validate(letter)


@router.post("/dead-letters/redrive", summary="Send dead letters again")
async def redrive_dead_letters(
    gateway: TheGateway, principal: ThePrincipal, order: contract.Redrive
) -> contract.RedriveOutcome:
    """Sends the messages again, as new ones without a time to live. A dead submission becomes a job with the id that it
    asked for. The response says which messages were sent."""
    broker = PostgresBroker(gateway.pool, consumer="gateway", task_queues=gateway.task_queues)
    async with gateway.connection() as conn, conn.transaction():
        chosen = await _chosen(conn, order)
        sent: set[str] = set()
        for queue_name, message_ids in chosen.items():
            letters = await redrive(conn, broker, queue_name, message_ids, contract.MOST_AT_ONCE)
            sent |= {letter.message_id for letter in letters}
        if sent:
            target = order.queue or ", ".join(sorted(chosen))
            await operator_audit.add(
                conn, OperatorAction.DEAD_LETTERS_REDRIVEN, target, principal.subject, message_ids=sorted(sent)
            )
    requested, present = set(order.message_ids or ()), {name for ids in chosen.values() for name in ids or ()}
    return contract.RedriveOutcome(
        sent=sorted(sent),
        not_found=sorted(requested - present),
        still_waiting=sorted(present - sent),
        more=order.all and len(sent) == contract.MOST_AT_ONCE,
    )


@router.post("/dead-letters/discard", summary="Delete dead letters, with a reason")
async def discard_dead_letters(
    gateway: TheGateway, principal: ThePrincipal, order: contract.Discard
) -> contract.DiscardOutcome:
    """Deletes the messages for good. The audit keeps the id, the cause of death, who discarded it and why."""
    async with gateway.connection() as conn:
        discarded = await inspection.discard(
            conn,
            queue_name=order.queue,
            message_ids=order.message_ids,
            actor=principal.subject,
            reason=order.reason,
            limit=contract.MOST_AT_ONCE,
        )
    return contract.DiscardOutcome(
        discarded=sorted(set(discarded)),
        not_found=sorted(set(order.message_ids or ()) - set(discarded)),
        more=len(discarded) == contract.MOST_AT_ONCE,
    )


async def _chosen(conn: Connection, order: contract.Redrive) -> dict[str, list[str] | None]:
    """Return the queues of the chosen letters, each with the ids; None stands for all letters of the queue."""
    if order.message_ids is None:
        return {str(order.queue): None}
    by_queue = await inspection.letter_queues(conn, order.message_ids, order.queue)
    return {queue_name: sorted(message_ids) for queue_name, message_ids in sorted(by_queue.items())}


def _configured(gateway: Gateway) -> Collection[str]:
    return (gateway.job_queue, *gateway.task_queues)


def _require_configured(gateway: Gateway, queue: str) -> None:
    if queue not in _configured(gateway):
        raise NotFoundError(f"there is no queue '{queue}'", remedy=nearest(queue, _configured(gateway)))


def _depths(name: str, depth: Depth, consumers: int) -> QueueDepths:
    return QueueDepths(
        queue_name=name,
        waiting=depth.waiting,
        scheduled=depth.scheduled,
        leased=depth.leased,
        dead=depth.dead,
        oldest_seconds=depth.oldest_seconds,
        consumers=consumers,
    )
