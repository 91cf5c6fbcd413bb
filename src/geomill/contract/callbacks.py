"""Requests and responses about callbacks."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from geomill.contract.paging import CursorPage, PageOptions
from geomill.domain.access.confidential import masked_url
from geomill.domain.engine.callback import Callback, CallbackStatus

UNTOLD = "the call got no response; an operator sees the reason"


class CallbackFilters(PageOptions):
    status: CallbackStatus | None = None


class CallbackView(BaseModel):
    """A call to a job's `callback_url`."""

    delivery_id: str
    job_id: str
    run_number: int = Field(description="The run of the job whose end it reports")
    url: str = Field(description="Values in the query are masked")
    status: CallbackStatus
    attempts: int
    last_status_code: int | None = Field(description="HTTP status of the latest attempt; null without a response")
    reason: str | None = Field(description="Why the latest attempt failed")
    next_attempt_at: datetime | None = Field(description="Null once it was delivered or given up")
    created_at: datetime
    ended_at: datetime | None
    sent_again_at: datetime | None = Field(description="When somebody last asked to send it again")

    @classmethod
    def of(cls, callback: Callback, *, for_partner: bool) -> Self:
        """Return the view. A partner reads no addresses of the network, which a failed call may mention."""
        reason = callback.last_error
        if for_partner and reason and callback.last_status is None:
            reason = UNTOLD
        pending = callback.status is CallbackStatus.PENDING
        return cls(
            delivery_id=callback.delivery_id,
            job_id=callback.job_id,
            run_number=callback.run_number,
            url=masked_url(callback.url),
            status=callback.status,
            attempts=callback.attempts,
            last_status_code=callback.last_status,
            reason=reason,
            next_attempt_at=callback.due_at if pending else None,
            created_at=callback.created_at,
            ended_at=callback.ended_at,
            sent_again_at=callback.sent_again_at,
        )


class CallbackPage(CursorPage):
    callbacks: list[CallbackView]
