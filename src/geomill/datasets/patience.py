"""Time limits of a file's first inspection, in proportion to its size. A file that takes longer is faulty, so it is not
retried."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from geomill.sdk import HandlerContext

LEAST_SECONDS = 300.0
BYTES_PER_SECOND = 2_000_000
"""A tenth of the speed of a slow machine with the slowest format, so that a valid file passes even on a busy
machine."""
MARGIN_SECONDS = 60.0
"""Keeps the limit below the handler's timeout, so that this limit applies first."""


def patience(size: int, timeout_seconds: float) -> float:
    return min(LEAST_SECONDS + size / BYTES_PER_SECOND, timeout_seconds - MARGIN_SECONDS)


def first_look(
    ctx: HandlerContext[Any], file_name: str, size: int, timeout_seconds: float
) -> AbstractContextManager[None]:
    seconds = patience(size, timeout_seconds)
    return ctx.time_limit(
        seconds,
        f"'{file_name}' could not be inspected within {seconds / 60:.0f} minutes, which is far more than a file of "
        f"{size:,} bytes should need: check the file, or write it again",
    )
