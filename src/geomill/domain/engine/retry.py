"""When a failed attempt is tried again. Pure: the jitter comes from the task's id, so a replay gives the same time."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Backoff = Literal["none", "fixed", "exponential"]
JITTER = 0.2
"""An exponential delay is shortened by up to this fraction, so that failures of one moment do not return as one."""


NO_SPACE, STORE_AWAY, DATABASE_AWAY = "no_space", "storage_unavailable", "database_unreachable"
PASSING = frozenset({NO_SPACE, STORE_AWAY, DATABASE_AWAY})
"""Codes of errors that are not the task's: a disk that is full, a store or a database that is away."""
PASSING_ATTEMPTS = 12
"""That an exponential backoff makes at such an error, if it may make a second one at all: with the default delays they
last for a quarter of an hour."""


class RetryPolicy(BaseModel):
    """Without one: 3 attempts, exponential from 1 s; 12 if a disk is full, or a store or the database is away."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: Annotated[int, Field(ge=1, le=100, description="Attempts in all, the first included")] = 3
    backoff: Annotated[Backoff, Field(description="How the delay grows")] = "exponential"
    initial_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 1.0
    max_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    retry_on: Annotated[
        tuple[str, ...] | None, Field(description="Only errors with these codes, such as 'timeout'; all when absent")
    ] = None

    def allows(self, *, failures: int, error_code: str, retryable: bool) -> bool:
        """Whether the node may be tried again after this many failed attempts."""
        if not retryable or failures >= self._most(error_code):
            return False
        return self.retry_on is None or error_code in self.retry_on

    def _most(self, error_code: str) -> int:
        """Attempts at an error of this kind."""
        patient = error_code in PASSING and self.backoff == "exponential" and self.max_attempts > 1
        return max(self.max_attempts, PASSING_ATTEMPTS) if patient else self.max_attempts

    def delay(self, *, failures: int, seed: str) -> timedelta:
        if self.backoff == "none":
            return timedelta(0)
        seconds = self.initial_delay_seconds
        if self.backoff == "exponential":
            seconds = min(seconds * 2.0 ** min(failures - 1, 60), self.max_delay_seconds)
            seconds *= 1 - JITTER * (zlib.crc32(seed.encode()) / 0xFFFFFFFF)
        return timedelta(seconds=min(seconds, self.max_delay_seconds))

    def not_before(self, now: datetime, *, failures: int, seed: str) -> datetime:
        return now + self.delay(failures=failures, seed=seed)
