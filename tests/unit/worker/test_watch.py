"""When an attempt may not go on. Time is given, nothing waits."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from geomill.domain.engine.task import TaskReport
from geomill.sdk.execution import Ended, failed
from geomill.worker.children.limits import MEGABYTE
from geomill.worker.children.pool import ChildPool
from geomill.worker.children.process import Child, ChildSetup
from geomill.worker.contact import Contact
from geomill.worker.slots import Slot
from geomill.worker.watch import STUBBORN_SECONDS, Watch
from tests.unit.worker.samples import slot


class FakeTask:
    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


class FakeChild:
    def __init__(self, megabytes: int) -> None:
        self.used = megabytes * MEGABYTE
        self.told = 0

    def memory(self) -> int:
        return self.used

    def tell_cancelled(self) -> None:
        self.told += 1

    def tell_until(self, until: float) -> None:
        self.until = until


def begun(**fields: Any) -> tuple[Slot, FakeTask]:
    made, task = slot(**fields), FakeTask()
    made.begun, made.notes.spoke, made.task = 0.0, 0.0, cast("asyncio.Task[None]", task)
    return made, task


def look(made: Slot, now: float, memory_mb: int | None = None) -> list[Slot]:
    given_up: list[Slot] = []
    children = ChildPool(ChildSetup(memory_mb=memory_mb), ready=0, tasks_per_child=1)
    contact = Contact(60.0, lambda: None)
    Watch({1: made}, children, contact, given_up.append).run_once(now)
    return given_up


@pytest.mark.parametrize(
    ("fields", "now", "code"),
    [
        ({}, 9.9, None),
        ({}, 10, "timeout"),
        ({"progress_timeout_seconds": 2}, 1.9, None),
        ({"progress_timeout_seconds": 2}, 2, "progress_timeout"),
        ({"progress_timeout_seconds": 20}, 11, "timeout"),
    ],
)
def test_too_long_and_too_quiet(fields: dict[str, Any], now: float, code: str | None) -> None:
    made, task = begun(**fields)
    look(made, now)
    assert (made.verdict.error_code if made.verdict else None) == code
    assert task.cancelled == (code is not None)


def test_progress_puts_the_end_off() -> None:
    made, _ = begun(progress_timeout_seconds=2)
    made.notes.spoke = 5
    look(made, 6)
    assert made.verdict is None


def test_time_does_not_count_before_the_handler_begins() -> None:
    made, _ = begun()
    made.begun = None
    look(made, 1000)
    assert made.forced_at is None


@pytest.mark.parametrize(("used", "code"), [(100, None), (101, "memory")])
def test_too_big(used: int, code: str | None) -> None:
    made, _ = begun()
    made.child = cast("Child", FakeChild(used))
    look(made, 1, memory_mb=100)
    assert (made.verdict.error_code if made.verdict else None) == code


def test_who_is_asked_to_stop_has_its_grace() -> None:
    made, task = begun()
    child = FakeChild(1)
    made.child = cast("Child", child)
    made.lose(grace_until=2)
    assert (made.cancelled, child.told, task.cancelled) == (True, 1, 0)
    look(made, 1.9)
    assert task.cancelled == 0
    look(made, 2)
    assert task.cancelled == 1
    assert made.outcome(None) is None


def test_who_ignores_everything_is_given_up() -> None:
    made, task = begun()
    look(made, 10)
    made.forced_at = 10
    assert look(made, 10.2) == []
    look(made, 10 + STUBBORN_SECONDS * 0.6)
    assert task.cancelled == 2
    assert look(made, 10 + STUBBORN_SECONDS) == [made]


GOOD, BAD = Ended(True, text='{"a":1}'), failed("no", "x", retryable=False)
STOPPED = failed("asked to", "cancelled", retryable=True)


@pytest.mark.parametrize(
    ("draining", "ended", "report"),
    [
        (False, GOOD, TaskReport.COMPLETED),
        (False, BAD, TaskReport.FAILED),
        (False, STOPPED, TaskReport.FAILED),
        (True, GOOD, TaskReport.COMPLETED),
        (True, BAD, TaskReport.FAILED),
        (True, STOPPED, TaskReport.ABANDONED),
        (True, None, TaskReport.ABANDONED),
    ],
)
def test_what_is_reported(draining: bool, ended: Ended | None, report: TaskReport) -> None:
    made = slot()
    made.draining = draining
    found = made.outcome(ended)
    assert found is not None
    assert found.report is report
    assert found.output == ('{"a":1}' if report is TaskReport.COMPLETED else None)
