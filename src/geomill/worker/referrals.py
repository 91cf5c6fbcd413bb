"""Passes calls on. An orchestrator calls a worker that has just freed a slot (engine/calls.py). If that worker does not
take all that waits, or does not serve the queue, it calls all workers of the queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable

from geomill.store.pool import Connection
from geomill.store.signals import direct_call, notify, queue_channel

PAUSE_SECONDS = 0.25
"""The time between two calls to all. In a busy platform every worker is full, and all would wake each other in vain."""


class Referrals:
    def __init__(self, queues: Collection[str], poke: Callable[[str], None]) -> None:
        self._direct = {direct_call(name): name for name in queues}
        self._poke = poke
        self._next_at = 0.0
        self._deferred: set[str] = set()

    def heard(self, calls: Iterable[str]) -> dict[str, str | None]:
        """Return the direct calls among these, each with its queue; None for a queue that this worker does not
        serve."""
        return {call: self._direct.get(call) for call in calls if call.startswith(direct_call(""))}

    async def pass_on(self, conn: Connection, calls: Collection[str]) -> None:
        """Call all workers of these queues, now or after the pause."""
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + PAUSE_SECONDS
            await notify(conn, [queue_channel(call.removeprefix(direct_call(""))) for call in calls])
            return
        for call in set(calls) - self._deferred:
            self._deferred.add(call)
            asyncio.get_running_loop().call_later(self._next_at - now, self._resume, call)

    def _resume(self, call: str) -> None:
        self._deferred.discard(call)
        self._poke(call)
