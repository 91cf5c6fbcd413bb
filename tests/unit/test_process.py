"""Duties that run until they are told to stop."""

from __future__ import annotations

import asyncio

import pytest

from geomill.process import run_duties


class Stage:
    """Duties that say what happens to them."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stop, self.begun = asyncio.Event(), asyncio.Event()

    async def endless(self) -> None:
        self.said.append("begun")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.said.append("cancelled")
            raise

    async def stopping(self) -> None:
        self.stop.set()

    async def failing(self) -> None:
        raise ValueError("broken")

    async def stubborn(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.said.append("failed while it was cancelled")
            raise RuntimeError("cannot stop")

    async def leave(self) -> None:
        self.said.append("left")


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_duties_run_until_stop_is_set_and_then_it_leaves(stage: Stage) -> None:
    running = asyncio.create_task(run_duties(stage.stop, stage.endless, leave=stage.leave))
    await stage.begun.wait()
    assert not running.done()
    stage.stop.set()
    await running
    assert stage.said == ["begun", "cancelled", "left"]


async def test_a_duty_that_fails_ends_the_others_and_its_error_is_raised_after_leaving(stage: Stage) -> None:
    with pytest.raises(ValueError, match="broken"):
        await run_duties(stage.stop, stage.endless, stage.failing, leave=stage.leave)
    assert stage.said == ["begun", "cancelled", "left"]


async def test_a_duty_that_cannot_stop_does_not_keep_it_from_leaving(stage: Stage) -> None:
    stage.stop.set()
    await run_duties(stage.stop, stage.stubborn, leave=stage.leave)
    assert stage.said[-1] == "left"


async def test_a_duty_that_ends_by_itself_ends_it_too(stage: Stage) -> None:
    await run_duties(stage.stop, stage.endless, stage.stopping, leave=stage.leave)
    assert stage.said == ["begun", "cancelled", "left"]


async def test_being_cancelled_leaves_as_well(stage: Stage) -> None:
    running = asyncio.create_task(run_duties(stage.stop, stage.endless, leave=stage.leave))
    await stage.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stage.said == ["begun", "cancelled", "left"]


async def test_nothing_is_left_running(stage: Stage) -> None:
    stage.stop.set()
    await run_duties(stage.stop, stage.endless, leave=stage.leave)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_fails_while_leaving_is_raised(stage: Stage) -> None:
    stage.stop.set()
    with pytest.raises(ValueError, match="broken"):
        await run_duties(stage.stop, leave=stage.failing)


async def test_a_duty_that_loses_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.process.AGAIN_SECONDS", 0.01)
    stage = Stage()

    async def forgetful() -> None:
        try:
            await stage.endless()
        except asyncio.CancelledError:
            stage.said.append("forgot it")
        await stage.endless()

    task = asyncio.create_task(run_duties(stage.stop, forgetful, leave=stage.leave))
    await stage.begun.wait()
    stage.stop.set()
    async with asyncio.timeout(5):
        await task
    assert stage.said == ["begun", "cancelled", "forgot it", "begun", "cancelled", "left"]
