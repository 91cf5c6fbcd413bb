"""The rules for retries of attempts. Pure: the jitter comes from the task id, so a replay gives the same time."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Backoff = Literal["none", "fixed", "exponential"]
JITTER = 0.2
"""The maximum fraction by which an exponential delay is shortened, so that retries spread out."""


NO_SPACE, STORE_AWAY, DATABASE_AWAY = "no_space", "storage_unavailable", "database_unreachable"
PASSING = frozenset({NO_SPACE, STORE_AWAY, DATABASE_AWAY})
"""Codes of errors that the task did not cause: a full disk, or an unavailable object store or database."""
PASSING_ATTEMPTS = 12
"""Attempts after such an error with exponential backoff, if the policy allows a retry at all. With the default delays
they last a quarter of an hour."""


class RetryPolicy(BaseModel):
    """When a failed task is retried. By default there are 3 attempts with exponential delays from 1 s. There are 12 if
    a disk is full, or the object store or the database is unavailable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: Annotated[int, Field(ge=1, le=100, description="Number of attempts, including the first")] = 3
    backoff: Annotated[Backoff, Field(description="How the delay grows")] = "exponential"
    initial_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 1.0
    max_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    retry_on: Annotated[
        tuple[str, ...] | None, Field(description="Retry only errors with these codes, such as 'timeout'; default: all")
    ] = None

    def allows(self, *, failures: int, error_code: str, retryable: bool) -> bool:
        """Whether the node may be retried after this many failed attempts."""
        if not retryable or failures >= self._most(error_code):
            return False
        return self.retry_on is None or error_code in self.retry_on

    def _most(self, error_code: str) -> int:
        """Return the maximum number of attempts for an error with this code."""
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
