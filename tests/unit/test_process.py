"""Duties that run until they are told to stop."""

from __future__ import annotations

import asyncio

import pytest

from geomill.process import run_duties


class RecordedDuties:
    """Duties that say what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.stop, self.begun = asyncio.Event(), asyncio.Event()

    async def endless(self) -> None:
        self.events.append("begun")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.events.append("cancelled")
            raise

    async def stopping(self) -> None:
        self.stop.set()

    async def failing(self) -> None:
        raise ValueError("broken")

    async def stubborn(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append("failed while it was cancelled")
            raise RuntimeError("cannot stop")

    async def leave(self) -> None:
        self.events.append("left")


@pytest.fixture
async def duties() -> RecordedDuties:
    return RecordedDuties()


async def test_duties_run_until_stop_is_set_and_then_it_leaves(duties: RecordedDuties) -> None:
    running = asyncio.create_task(run_duties(duties.stop, duties.endless, leave=duties.leave))
    await duties.begun.wait()
    assert not running.done()
    duties.stop.set()
    await running
    assert duties.events == ["begun", "cancelled", "left"]


async def test_a_duty_that_fails_ends_the_others_and_its_error_is_raised_after_leaving(duties: RecordedDuties) -> None:
    with pytest.raises(ValueError, match="broken"):
        await run_duties(duties.stop, duties.endless, duties.failing, leave=duties.leave)
    assert duties.events == ["begun", "cancelled", "left"]


async def test_a_duty_that_cannot_stop_does_not_keep_it_from_leaving(duties: RecordedDuties) -> None:
    duties.stop.set()
    await run_duties(duties.stop, duties.stubborn, leave=duties.leave)
    assert duties.events[-1] == "left"


async def test_a_duty_that_ends_by_itself_ends_it_too(duties: RecordedDuties) -> None:
    await run_duties(duties.stop, duties.endless, duties.stopping, leave=duties.leave)
    assert duties.events == ["begun", "cancelled", "left"]


async def test_being_cancelled_leaves_as_well(duties: RecordedDuties) -> None:
    running = asyncio.create_task(run_duties(duties.stop, duties.endless, leave=duties.leave))
    await duties.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert duties.events == ["begun", "cancelled", "left"]


async def test_nothing_is_left_running(duties: RecordedDuties) -> None:
    duties.stop.set()
    await run_duties(duties.stop, duties.endless, leave=duties.leave)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_fails_while_leaving_is_raised(duties: RecordedDuties) -> None:
    duties.stop.set()
    with pytest.raises(ValueError, match="broken"):
        await run_duties(duties.stop, leave=duties.failing)


async def test_a_duty_that_loses_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.process.AGAIN_SECONDS", 0.01)
    duties = RecordedDuties()

    async def forgetful() -> None:
        try:
            await duties.endless()
        except asyncio.CancelledError:
            duties.events.append("forgot it")
        await duties.endless()

    task = asyncio.create_task(run_duties(duties.stop, forgetful, leave=duties.leave))
    await duties.begun.wait()
    duties.stop.set()
    async with asyncio.timeout(5):
        await task
    assert duties.events == ["begun", "cancelled", "forgot it", "begun", "cancelled", "left"]
