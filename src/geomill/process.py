"""What every role of ours has in common: duties that run until it is told to stop, and an orderly leave."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

AGAIN_SECONDS = 5.0
"""More than a duty takes to clean up."""


COLLECT_AFTER = (10_000, 20, 50)
"""Objects more than before, and rounds of the younger generations, until garbage is looked for."""


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` for a role, on the fastest event loop there is. Next to nothing of ours is garbage that refers to
    itself: what the imports made is never looked at again, and what is young only now and then. A step of a chain takes
    a tenth less by that. What a role writes is for its user alone."""
    os.umask(0o077)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
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
        await end([stopping, *running])
        await leave()


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel until all have ended. Once may not be enough: `asyncio.wait_for` of Python 3.11, which psycopg waits with,
    loses a cancellation that comes together with what it waits for."""
    every = list(tasks)
    pending = set(every)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_SECONDS)
    await asyncio.gather(*every, return_exceptions=True)  # what they raised at their end is nobody's concern
