"""Permits that an orchestrator owes to Service Bus: its duties end when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from geomill import process
from geomill.engine.permits import PermitSender
from geomill.process import run_duties
from geomill.queues.servicebus import Bus
from geomill.queues.servicebus.bus import Posting, Unsent
from geomill.store.duties import Duties

TASKS = "container-tasks"


class ForgetfulBus(Bus):
    """A bus whose library loses the first cancellation, as `asyncio.wait_for` of Python 3.11 may."""

    def __init__(self) -> None:
        self.sends = 0

    async def warm_up(self, queue_names: Iterable[str]) -> None:
        pass

    async def send(self, queue_name: str, postings: Sequence[Posting]) -> list[Unsent]:
        self.sends += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.sends > 1:
                raise
        return []


async def test_a_lost_cancellation_does_not_keep_the_process_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "AGAIN_SECONDS", 0.05)
    bus, no_pool, stop = ForgetfulBus(), Any, asyncio.Event()
    sender = PermitSender(bus, no_pool, Duties("orch-1"), (TASKS,))
    sender.owe_again([TASKS])

    async def leave() -> None:
        pass

    running = asyncio.create_task(run_duties(stop, sender.send_for_ever, sender.remind_for_ever, leave=leave))
    async with asyncio.timeout(10):
        while not bus.sends:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        stop.set()
        await running
