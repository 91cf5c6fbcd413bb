"""Runs the event loop and the duties of an orchestrator, worker or server, and ends them in order."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from geomill.telemetry.service_manager import signs_of_life

T = TypeVar("T")

AGAIN_SECONDS = 5.0
"""Longer than a duty takes to clean up. Duties that still run then are cancelled again."""


COLLECT_AFTER = (10_000, 20, 50)
"""Thresholds of the garbage collector's three generations, far above the defaults."""


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on the fastest event loop, with little garbage collection and a strict umask.

    geomill creates almost no reference cycles. Objects from imports are therefore frozen and never scanned, and young
    ones are scanned rarely, which saves a tenth of the time of each step in a chain. Only the user can read files that
    the process writes. systemd, if it started the process, learns that the loop runs.
    """
    os.umask(0o077)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(_alive(main))


async def _alive(main: Coroutine[Any, Any, T]) -> T:
    async with signs_of_life():
        return await main


Duty = Callable[[], Coroutine[Any, Any, None]]


async def run_duties(stop: asyncio.Event, *duties: Duty, leave: Callable[[], Awaitable[None]]) -> None:
    """Run the duties until `stop` is set or one of them fails. Always call `leave` at the end."""
    stopping = asyncio.create_task(stop.wait(), name="stop")
    running = [asyncio.create_task(start(), name=start.__name__) for start in duties]
    try:
        await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
        for duty in running:
            if duty.done():
                duty.result()
    finally:
        await end([stopping, *running])
        await leave()


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks until all have ended. One cancellation may not suffice: `asyncio.wait_for` of Python 3.11, which
    psycopg uses, loses a cancellation that arrives together with the awaited result."""
    all_tasks = list(tasks)
    pending = set(all_tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_SECONDS)
    await asyncio.gather(*all_tasks, return_exceptions=True)  # errors while ending are ignored
