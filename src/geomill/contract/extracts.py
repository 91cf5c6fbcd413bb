"""Responses about extracts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, Field


class ExtractStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class ExtractView(BaseModel):
    """A file of features or pixels that a caller ordered."""

    extract_id: str
    asset_id: str
    revision: int
    status: ExtractStatus
    file_name: str
    media_type: str
    created_at: datetime
    expires_at: datetime = Field(description="When it is deleted")
    href: str = Field(description="The path of this document")
    file_href: str | None = Field(default=None, description="The path of the file, when it is ready")
    size: int | None = None
    sha256: str | None = None
    error: str | None = Field(default=None, description="Why there will be no file")
