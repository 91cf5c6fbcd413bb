"""A submission that another application sends through Service Bus, in the format of the specification."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.ids import id_of_key
from geomill.domain.jsonvalue import to_json

SUBMITTER = "service-bus"
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)
"""PostgreSQL holds times that Python cannot read: a job with one of them could not be shown, nor any list with it."""


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    to_json(value)
    return value


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _plausible(moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise ValueError(f"must be between the years {EARLIEST.year} and {LATEST.year}")
    return moment


Text = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_plain)]
JobId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""The id of a job is part of URLs, of paths in the store and of the ids of its tasks."""


class ForeignSubmission(BaseModel):
    """Unknown fields are ignored: other applications send fields of their own."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    workflow_id: Text
    input_params: Annotated[dict[str, Any], AfterValidator(_storable)] = Field(
        default_factory=dict, validation_alias=AliasChoices("input_params", "inputs")
    )
    job_id: JobId | None = None
    correlation_id: Text | None = None
    submitted_by: Text | None = None
    callback_url: Annotated[str, Field(max_length=512)] | None = None
    idempotency_key: Text | None = None
    priority: Annotated[int, Field(ge=0, le=10)] = 0
    submitted_at: Annotated[AwareDatetime, AfterValidator(_plausible)] | None = None
    message_id: Annotated[str, Field(max_length=128)] | None = None

    @classmethod
    def of(cls, body: bytes) -> Self:
        return cls.model_validate_json(body)

    def order(self, queue_name: str, message_id: str) -> JobQueueMessage:
        """Return the submission as orchestrators read it. The same message always gives the same job id."""
        key = self.idempotency_key or f"{SUBMITTER}/{queue_name}/{self.message_id or message_id}"
        job_id = self.job_id or id_of_key(key)
        return JobQueueMessage(
            job_id=job_id,
            message_id=job_id,
            workflow_id=self.workflow_id,
            input_params=self.input_params,
            priority=self.priority,
            correlation_id=self.correlation_id,
            callback_url=self.callback_url,
            idempotency_key=self.idempotency_key,
            submitted_at=self.submitted_at,
            submitted_by=SUBMITTER,
            on_behalf_of=self.submitted_by,
        )
