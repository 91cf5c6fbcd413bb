# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on queues and dead letters."""

from __future__ import annotations

from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.queues import (
    DeadLetterDetails,
    DeadLetterPage,
    Discard,
    DiscardOutcome,
    MessageList,
    MessageView,
    QueueDepths,
    QueueDetails,
    QueueList,
    Redrive,
    RedriveOutcome,
)


class QueueOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def all(self) -> list[QueueDepths]:
        queues = self._connection.get(QueueList, "/api/v1/queues")
        return queues.queues

    def get(self, queue: str) -> QueueDetails:
        return self._connection.get(QueueDetails, path("/api/v1/queues/{}", queue))

    def peek(self, queue: str, *, limit: int = 20) -> MessageList:
        """Return the messages that will be received next, without taking them."""
        return self._connection.get(MessageList, path("/api/v1/queues/{}/messages", queue), limit=limit)

    def message(self, queue: str, message_id: str) -> MessageView:
        return self._connection.get(MessageView, path("/api/v1/queues/{}/messages/{}", queue, message_id))

    def dead_letters(self, **filters: Any) -> DeadLetterPage:
        """Return a page of dead letters, the latest first. Filters: `queue`, `reason`, `limit`, `cursor`."""
        return self._connection.get(DeadLetterPage, "/api/v1/dead-letters", **filters)

    def dead_letter(self, message_id: str) -> DeadLetterDetails:
        return self._connection.get(DeadLetterDetails, path("/api/v1/dead-letters/{}", message_id))

    def redrive(self, selection: Redrive) -> RedriveOutcome:
        """Send dead letters again."""
        return self._connection.post(RedriveOutcome, "/api/v1/dead-letters/redrive", selection)

    def discard(self, selection: Discard) -> DiscardOutcome:
        """Delete dead letters. The audit keeps who did it and why."""
        return self._connection.post(DiscardOutcome, "/api/v1/dead-letters/discard", selection)
