"""Ends attempts that must not go on.

Such an attempt takes too long, reports no progress, uses too much memory, may have been given to others, or ignores a
request to stop. The watch works without the database. Liveness and progress are separate signals: the keeper renews the
lease of a handler that hangs, and the watch ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from geomill.sdk.execution import Ended, failed
from geomill.worker.children.limits import MEGABYTE
from geomill.worker.children.pool import ChildPool
from geomill.worker.contact import Contact
from geomill.worker.slots import Slot

TICK_SECONDS = 0.2
STUBBORN_SECONDS = 5.0
"""After this time the slot of an async handler that ignores its cancellation is freed. The handler keeps running."""


class Watch:
    def __init__(
        self, slots: Mapping[int, Slot], children: ChildPool, contact: Contact, give_up: Callable[[Slot], None]
    ) -> None:
        self._slots = slots
        self._children = children
        self._contact = contact
        self._give_up = give_up

    async def run(self, on_tick: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.run_once(time.monotonic())
            on_tick()

    def run_once(self, now: float) -> None:
        self._contact.check()
        for slot in list(self._slots.values()):
            if slot.child:
                slot.child.tell_until(self._contact.until)
            if slot.forced_at is not None:
                self._insist(slot, now)
            elif verdict := self._verdict(slot, now):
                slot.force(verdict)
            elif slot.grace_until is not None and now >= slot.grace_until:
                slot.force()
        self._children.trim(now)

    def _insist(self, slot: Slot, now: float) -> None:
        assert slot.forced_at is not None
        if now - slot.forced_at >= STUBBORN_SECONDS:
            self._give_up(slot)
        elif now - slot.forced_at >= STUBBORN_SECONDS / 2 and slot.task:
            slot.task.cancel()

    def _verdict(self, slot: Slot, now: float) -> Ended | None:
        if slot.begun is None:
            return None
        message = slot.message
        if now - slot.begun >= message.timeout_seconds:
            text = f"the handler ran longer than timeout_seconds ({message.timeout_seconds:g} s)"
            return failed(text, "timeout", retryable=True)
        if slot.notes.limited and now >= slot.notes.limited[0]:
            return failed(slot.notes.limited[1], "too_slow", retryable=False)
        quiet = message.progress_timeout_seconds
        if quiet is not None and now - slot.notes.spoke >= quiet:
            text = f"the handler reported no progress for progress_timeout_seconds ({quiet:g} s)"
            return failed(text, "progress_timeout", retryable=True)
        return self._too_big(slot)

    def _too_big(self, slot: Slot) -> Ended | None:
        limit = self._children.memory_limit
        if limit is None or slot.child is None:
            return None
        used = slot.child.memory()
        if used <= limit:
            return None
        text = f"the handler used {used // MEGABYTE} MB of memory, more than the limit of {limit // MEGABYTE} MB"
        return failed(text, "memory", retryable=True)
