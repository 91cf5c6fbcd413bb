"""The evaluator by example: cancel, pause and resume, the retry budget, and carrying on after a take-over."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.engine.decision import Cancel, Outcome
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus
from tests.unit.domain.engine.driver import JobDriver, chain, items, names, task

FAN_OUT: dict[str, Any] = {
    "a": task("many"),
    "many": {"type": "fan_out", "source": [10, 20, 30], "task": {"handler": "h"}, "max_parallel": 2, "next": "END"},
}


def command(report: TaskReport, reason: str = "") -> Outcome:
    return Outcome("", 0, report, error=reason)


PAUSE, RESUME = command(TaskReport.PAUSE), command(TaskReport.RESUME)


@pytest.mark.parametrize(("reason", "error"), [("too expensive", "too expensive"), ("", "cancelled")])
def test_cancel_ends_the_job_and_what_runs(reason: str, error: str) -> None:
    job = JobDriver(chain("a", "b"))
    decision = job.feed(command(TaskReport.CANCEL, reason))
    assert (decision.status, decision.error, decision.failed_node) == (JobStatus.CANCELLED, error, "")
    assert decision.cancels == [Cancel("a", SINGLE, 1)]
    assert job.statuses() == {"a": "cancelled", "b": "skipped"}


def test_cancel_of_an_ended_job_is_stale() -> None:
    job = JobDriver(chain("a"))
    job.feed(job.done("a"))
    cancel = command(TaskReport.CANCEL)
    assert job.feed(cancel).stale == [cancel]
    assert job.run.status is JobStatus.COMPLETED


def test_a_paused_job_takes_results_but_sends_nothing() -> None:
    job = JobDriver(chain("a", "b"))
    job.feed(PAUSE)
    assert names(job.feed(job.done("a"))) == []
    assert job.statuses() == {"a": "completed", "b": "ready"}
    assert names(job.feed(RESUME)) == ["b"]
    job.feed(job.done("b"))
    assert job.run.status is JobStatus.COMPLETED


def test_resuming_what_is_not_paused_changes_nothing() -> None:
    job = JobDriver(FAN_OUT)
    job.feed(job.done("a"))
    decision = job.feed(RESUME, RESUME)
    assert (decision.steps, decision.dispatches, decision.nodes) == ([], [], {})


def test_a_retry_waits_for_the_end_of_the_pause() -> None:
    job = JobDriver(chain("a"))
    assert names(job.feed(PAUSE, job.failed("a"))) == []
    (again,) = job.feed(RESUME).dispatches
    assert (again.attempt, again.retry_count) == (2, 1)


def test_a_pause_survives_a_take_over() -> None:
    job = JobDriver(chain("a", "b"))
    job.feed(PAUSE, job.done("a"))
    successor = job.restored(paused=True)
    successor.carry_on()
    assert successor.decision().dispatches == []
    successor.feed([RESUME])
    assert names(job.take(successor.decision())) == ["b"]


def test_a_paused_fan_out_sends_no_items() -> None:
    job = JobDriver(FAN_OUT)
    job.feed(PAUSE)
    assert items(job.feed(job.done("a"))) == []
    assert job.statuses()["many"] == "running"
    assert items(job.feed(RESUME)) == [0, 1]
    assert items(job.feed(PAUSE, job.done("many", item=0))) == []
    assert items(job.feed(RESUME)) == [2]


def test_a_pause_and_its_end_in_one_batch_send_what_was_held_back() -> None:
    job = JobDriver(FAN_OUT)
    assert items(job.feed(PAUSE, job.done("a"), RESUME)) == [0, 1]


def test_items_that_failed_in_a_pause_are_sent_once_when_it_ends() -> None:
    job = JobDriver(FAN_OUT)
    job.feed(job.done("a"))
    assert items(job.feed(PAUSE, job.failed("many", item=1))) == []
    assert items(job.feed(RESUME, RESUME)) == [1]
    assert items(job.feed(PAUSE, job.failed("many", item=1), RESUME)) == [1]
    assert job.sent["many", 1].attempt == 3


def test_cancelling_a_paused_fan_out_leaves_no_item_open() -> None:
    job = JobDriver(FAN_OUT)
    job.feed(job.done("a"))
    job.feed(PAUSE, job.failed("many", item=1))
    decision = job.feed(command(TaskReport.CANCEL))
    assert decision.cancels == [Cancel("many", 0, 1)]
    assert job.rows["many", 0].status is NodeStatus.CANCELLED
    assert job.rows["many", 1].status is NodeStatus.SKIPPED


def test_parameters_that_cannot_be_rendered_after_a_pause_fail_the_node() -> None:
    job = JobDriver({"a": task("b"), "b": task("END", params={"x": "{{ nodes.a.output.gone }}"})})
    job.feed(PAUSE, job.done("a", {}))
    decision = job.feed(RESUME)
    assert decision.status is JobStatus.FAILED
    assert decision.failed_node == "b"


@pytest.mark.parametrize(("budget", "attempts"), [(None, 9), (0, 1), (1, 2), (4, 5)])
def test_the_retry_budget_bounds_the_retries_of_all_nodes(budget: int | None, attempts: int) -> None:
    job = JobDriver(chain("a", retry={"max_attempts": 9}), retry_budget=budget)
    while job.run.status is JobStatus.RUNNING:
        job.feed(job.failed("a"))
    assert job.run.nodes["a"].attempt == attempts


def test_the_retry_budget_survives_a_take_over() -> None:
    job = JobDriver({"a": task("END"), "b": task("END")}, first=["a", "b"], retry_budget=1)
    job.feed(job.failed("a"))
    successor = job.restored()
    successor.feed([job.failed("b")])
    assert successor.decision().status is JobStatus.FAILED


def test_carrying_on_begins_what_was_never_begun() -> None:
    job = JobDriver(chain("a"))
    for key in list(job.rows):
        job.rows[key] = job.rows[key].evolve(status="pending", attempt=0)
    successor = job.restored()
    successor.carry_on()
    assert names(successor.decision()) == ["a"]


def test_carrying_on_with_an_ended_job_changes_nothing() -> None:
    job = JobDriver(chain("a"))
    job.feed(job.done("a"))
    successor = job.restored()
    successor.carry_on()
    assert successor.decision().steps == []
