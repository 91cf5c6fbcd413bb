"""What every role of ours has in common: duties that run until it is told to stop, and an orderly leave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on the fastest event loop there is."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)


Duty = Callable[[], Coroutine[Any, Any, None]]


async def run_duties(stop: asyncio.Event, *duties: Duty, leave: Callable[[], Awaitable[None]]) -> None:
    """Run the duties until `stop` is set or one of them fails, then `leave` whatever happened."""
    stopping = asyncio.create_task(stop.wait(), name="stop")
    running = [asyncio.create_task(start(), name=start.__name__) for start in duties]
    try:
        await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
        for duty in running:
            if duty.done():
                duty.result()
    finally:
        tasks: list[asyncio.Task[Any]] = [stopping, *running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await leave()
