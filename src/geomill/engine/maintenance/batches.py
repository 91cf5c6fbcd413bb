"""The loop of duties that delete in batches: again and again, and on without a pause while there is more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import psycopg

from geomill.errors import GeomillError
from geomill.store.duties import Duties

log = logging.getLogger(__name__)

FIRST_SECONDS = 60.0
"""The pause before the first look, at most: a process that has just begun has other work."""


async def repeat_batches(
    duty: str, run_once: Callable[[], Awaitable[int]], *, batch: int, look_seconds: float, duties: Duties | None
) -> None:
    """Call `run_once`, which returns how many it deleted, for ever. A failure is noted, and tried again later."""
    pause = min(FIRST_SECONDS, look_seconds)
    while True:
        await asyncio.sleep(pause)
        pause = look_seconds
        try:
            while await run_once() >= batch:
                pass
        except (psycopg.Error, GeomillError) as error:
            log.warning("the duty %s failed; it is tried again later: %s", duty, error)
            if duties:
                duties.failed(duty, error)
        else:
            if duties:
                duties.passed(duty)
