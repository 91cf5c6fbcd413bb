"""Requests and responses about queues and dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from geomill.contract.inputs import ApiInput, Text, storable
from geomill.contract.paging import CursorPage, PageOptions

MOST_AT_ONCE = 1000
"""Dead letters that one request sends again or discards."""

MessageId = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(storable)]


class QueueDepths(BaseModel):
    """A queue and how many messages it has."""

    queue_name: str
    waiting: int = Field(description="Messages that can be received now")
    scheduled: int = Field(description="Messages that can be received later")
    leased: int = Field(description="Messages that consumers have")
    dead: int = Field(description="Dead letters")
    oldest_seconds: float | None = Field(
        description="How long the oldest waiting message has waited; null if none does"
    )
    consumers: int = Field(description="Live processes that take messages from it")


class QueueList(BaseModel):
    queues: list[QueueDepths]


class QueueDetails(QueueDepths):
    instances: list[str] = Field(description="Ids of the live processes that take messages from it")


class MessageView(BaseModel):
    """A message in a queue."""

    model_config = ConfigDict(from_attributes=True)

    message_id: str
    priority: int
    tenant: str = Field(description="The platform that the work is for; empty for geomill's own work")
    delivery_count: int
    enqueued_at: datetime
    visible_at: datetime = Field(description="Nobody receives it before")
    expires_at: datetime | None
    body_bytes: int
    body: Any = Field(
        default=None, description="Null in a list if it is longer than 4096 bytes; get the message itself"
    )


class MessageList(BaseModel):
    messages: list[MessageView]
    more: bool = Field(description="Whether the queue has more messages than are listed")


class PeekOptions(ApiInput):
    limit: Annotated[int, Field(ge=1, le=1000)] = 20


class DeadLetterFilters(PageOptions):
    queue: Text | None = None
    reason: Text | None = None


class DeadLetterDetails(BaseModel):
    """A message that could not be handled, with the reason."""

    model_config = ConfigDict(from_attributes=True)

    queue_name: str
    message_id: str
    reason: str
    description: str
    delivery_count: int
    enqueued_at: datetime
    dead_lettered_at: datetime
    body_bytes: int
    body: Any = Field(default=None, description="Null in a list if it is longer than 4096 bytes; get the letter itself")


class DeadLetterPage(CursorPage):
    dead_letters: list[DeadLetterDetails]


class LetterSelection(ApiInput):
    """The dead letters with some ids, or all of a queue."""

    queue: Text | None = Field(default=None, description="Only dead letters of this queue; required with `all`")
    message_ids: Annotated[list[MessageId], Field(min_length=1, max_length=MOST_AT_ONCE)] | None = None
    all: Annotated[bool, Field(strict=True)] = Field(
        default=False, description=f"All dead letters of the queue, {MOST_AT_ONCE} at once; instead of `message_ids`"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.all == (self.message_ids is not None):
            raise ValueError("give either message_ids or 'all': true")
        if self.all and self.queue is None:
            raise ValueError("'all' needs the queue: name it as queue")
        return self


class Redrive(LetterSelection):
    """Dead letters to send again."""


class Discard(LetterSelection):
    """Dead letters to delete. The audit keeps who did it and why."""

    reason: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(storable)
    ]


class RedriveOutcome(BaseModel):
    sent: list[str] = Field(description="Ids of the messages that were sent again")
    not_found: list[str] = Field(description="Ids that have no dead letter, perhaps because it was sent again before")
    still_waiting: list[str] = Field(
        description="Ids whose letter stays, because a message with the id waits in the queue already"
    )
    more: bool = Field(default=False, description="Whether the queue may have more dead letters: repeat the request")


class DiscardOutcome(BaseModel):
    discarded: list[str]
    not_found: list[str]
    more: bool = Field(default=False, description="Whether the queue may have more dead letters: repeat the request")
