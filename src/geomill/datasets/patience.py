"""How long the first look at a file may take: minutes that follow its size. A file that needs longer is at fault, so it
is not tried again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from geomill.sdk import HandlerContext

LEAST_SECONDS = 300.0
BYTES_PER_SECOND = 2_000_000
"""A tenth of what a slow machine does with the slowest format, so that an honest file passes on a busy one too."""
MARGIN_SECONDS = 60.0
"""Less than the timeout of the handler, so that this limit is met first."""


def patience(size: int, timeout_seconds: float) -> float:
    return min(LEAST_SECONDS + size / BYTES_PER_SECOND, timeout_seconds - MARGIN_SECONDS)


def first_look(
    ctx: HandlerContext[Any], file_name: str, size: int, timeout_seconds: float
) -> AbstractContextManager[None]:
    seconds = patience(size, timeout_seconds)
    return ctx.time_limit(
        seconds,
        f"'{file_name}' could not be looked at within {seconds / 60:.0f} minutes, which is much more than its "
        f"{size:,} bytes explain: check the file, or write it anew",
    )
