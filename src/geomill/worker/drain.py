"""The drain: the orderly end of a worker, which does not waste the work of its handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

_END_SECONDS = 2.0


async def drain(slots: Mapping[int, Slot], seconds: float) -> None:
    """Ask every handler to stop and wait for them. Tasks that complete are reported as usual."""
    for slot in list(slots.values()):
        slot.draining = True
        slot.ask_to_stop(slot.grace_until)
    if not await _empty(slots, seconds):
        log.warning("%d tasks did not end within %g s and are handed back", len(slots), seconds)


async def end_all(slots: Mapping[int, Slot]) -> list[Slot]:
    """Force the remaining tasks to end unfinished. Returns the slots that still do not end."""
    for slot in list(slots.values()):
        slot.draining = True
        slot.force()
    await _empty(slots, _END_SECONDS)
    return list(slots.values())


async def _empty(slots: Mapping[int, Slot], seconds: float) -> bool:
    if tasks := [slot.task for slot in slots.values() if slot.task]:
        await asyncio.wait(tasks, timeout=seconds)
    return not slots
