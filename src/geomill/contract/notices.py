"""The notice that geomill posts to the `callback_url` of a submission."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class JobEnded(BaseModel):
    """A job has ended. The header `X-Geomill-Delivery` is the same for every attempt to send one notice."""

    job_id: str
    status: str = Field(description="`completed`, `failed` or `cancelled`", examples=["completed"])
    result_url: str = Field(description="Where to read the job")
    workflow_id: str
    correlation_id: str | None = None
    completed_at: datetime
    error: str | None = None
    stage_job_id: str | None = Field(default=None, description="Only for a stage job")
    job_type: str | None = Field(default=None, description="Only for a stage job")
    attempt: int | None = Field(default=None, description="Only for a stage job")
