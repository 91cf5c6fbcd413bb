"""Requests and responses about the log lines of handlers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from geomill.contract.inputs import ApiInput, Text

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LEVELS: tuple[LogLevel, ...] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LineId = Annotated[int, Field(ge=0, le=2**63 - 1)]


class LogFilters(ApiInput):
    """Filters of log lines. A line must pass all of them."""

    node_id: Text | None = None
    item_index: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Only lines of this item of a fan-out; needs `node_id`"
    )
    attempt: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    level: LogLevel | None = Field(default=None, description="Only lines of this level or above")


class LogOptions(LogFilters):
    after: LineId = Field(default=0, description="Only lines with a greater id")
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class LogLine(BaseModel):
    log_id: int
    node_id: str
    item_index: int | None = Field(description="Null for a node that is not a fan-out")
    attempt: int
    level: str
    message: str
    created_at: datetime


class LogPage(BaseModel):
    lines: list[LogLine]
    next_after: int = Field(description="Pass it as `after` to get the following lines")
    more: bool = Field(
        description="Whether lines may follow already. A page may be short, since a request examines a bounded number"
    )
