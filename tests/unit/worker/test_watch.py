"""When an attempt is ended. The test sets the time; nothing waits."""

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
        self.cancellations = 0

    def memory(self) -> int:
        return self.used

    def tell_cancelled(self) -> None:
        self.cancellations += 1

    def tell_until(self, until: float) -> None:
        self.until = until


def begun(**fields: Any) -> tuple[Slot, FakeTask]:
    task_slot, task = slot(**fields), FakeTask()
    task_slot.begun, task_slot.notes.spoke, task_slot.task = 0.0, 0.0, cast("asyncio.Task[None]", task)
    return task_slot, task


def look(task_slot: Slot, now: float, memory_mb: int | None = None) -> list[Slot]:
    given_up: list[Slot] = []
    children = ChildPool(ChildSetup(memory_mb=memory_mb), ready=0, tasks_per_child=1)
    contact = Contact(60.0, lambda: None)
    Watch({1: task_slot}, children, contact, given_up.append).run_once(now)
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
    task_slot, task = begun(**fields)
    look(task_slot, now)
    assert (task_slot.verdict.error_code if task_slot.verdict else None) == code
    assert task.cancelled == (code is not None)


def test_progress_puts_the_end_off() -> None:
    task_slot, _ = begun(progress_timeout_seconds=2)
    task_slot.notes.spoke = 5
    look(task_slot, 6)
    assert task_slot.verdict is None


def test_time_does_not_count_before_the_handler_begins() -> None:
    task_slot, _ = begun()
    task_slot.begun = None
    look(task_slot, 1000)
    assert task_slot.forced_at is None


@pytest.mark.parametrize(("used", "code"), [(100, None), (101, "memory")])
def test_too_big(used: int, code: str | None) -> None:
    task_slot, _ = begun()
    task_slot.child = cast("Child", FakeChild(used))
    look(task_slot, 1, memory_mb=100)
    assert (task_slot.verdict.error_code if task_slot.verdict else None) == code


def test_who_is_asked_to_stop_has_its_grace() -> None:
    task_slot, task = begun()
    child = FakeChild(1)
    task_slot.child = cast("Child", child)
    task_slot.lose(grace_until=2)
    assert (task_slot.cancelled, child.cancellations, task.cancelled) == (True, 1, 0)
    look(task_slot, 1.9)
    assert task.cancelled == 0
    look(task_slot, 2)
    assert task.cancelled == 1
    assert task_slot.outcome(None) is None


def test_who_ignores_everything_is_given_up() -> None:
    task_slot, task = begun()
    look(task_slot, 10)
    task_slot.forced_at = 10
    assert look(task_slot, 10.2) == []
    look(task_slot, 10 + STUBBORN_SECONDS * 0.6)
    assert task.cancelled == 2
    assert look(task_slot, 10 + STUBBORN_SECONDS) == [task_slot]


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
    task_slot = slot()
    task_slot.draining = draining
    outcome = task_slot.outcome(ended)
    assert outcome is not None
    assert outcome.report is report
    assert outcome.output == ('{"a":1}' if report is TaskReport.COMPLETED else None)
