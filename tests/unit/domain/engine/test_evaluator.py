"""The evaluator by example. Fan-outs and commands have files of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from geomill.domain.engine.decision import Cancel, Outcome
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus
from tests.unit.domain.engine.driver import JobDriver, chain, names, task
from tests.unit.domain.engine.simulation import NOW

BRANCHES = {
    "size": task("route"),
    "route": {
        "type": "conditional",
        "condition_field": "{{ nodes.size.output.mb }}",
        "branches": [
            {"condition": "< 10", "next": "small"},
            {"condition": "< 100", "next": ["middle", "extra"]},
            {"default": True, "next": "large"},
        ],
    },
    "small": task("join"),
    "middle": task("after_middle"),
    "extra": task("join"),
    "after_middle": task("join"),
    "large": task("join"),
    "join": task("END", params={"middle": "{{ nodes.middle.output.n | default(none) }}"}),
}


def test_evaluate_begins_a_new_job() -> None:
    job = JobDriver(chain("a"))
    assert names(job.last) == ["a"]
    assert job.run.status is JobStatus.RUNNING
    assert [str(step.target) for step in job.last.steps if step.node_id == "START"] == ["ready", "completed"]


def test_a_job_without_tasks_completes_at_once() -> None:
    job = JobDriver({}, first="END")
    assert job.run.status is JobStatus.COMPLETED
    assert job.last.result == {}


def test_the_state_changes_only_when_a_decision_is_applied() -> None:
    job = JobDriver(chain("a", "b"))
    evaluation = Evaluation(job.run, NOW)
    evaluation.feed([job.done("a")])
    assert names(evaluation.decision()) == ["b"]
    assert job.statuses() == {"a": "dispatched", "b": "pending"}


def test_a_successor_waits_for_all_and_sees_their_outputs() -> None:
    join = task("END", params={"sum": "{{ nodes.a.output.n + nodes.b.output.n }}", "job": "{{ job.job_id }}"})
    job = JobDriver({"a": task("join"), "b": task("join"), "join": join}, first=["a", "b"])
    assert names(job.last) == ["a", "b"]
    assert names(job.feed(job.done("a", {"n": 1}))) == []
    assert names(job.feed(job.done("b", {"n": 2}))) == ["join"]
    assert job.params("join") == {"sum": 3, "job": "job"}


# Branches


@pytest.mark.parametrize(
    ("megabytes", "dispatched", "branch"),
    [(5, ["small"], "< 10"), (50, ["middle", "extra"], "< 100"), (500, ["large"], "default")],
)
def test_the_first_branch_that_holds_is_taken_and_the_others_are_skipped(
    megabytes: int, dispatched: list[str], branch: str
) -> None:
    job = JobDriver(BRANCHES)
    assert names(job.feed(job.done("size", {"mb": megabytes}))) == dispatched
    assert job.output("route")["branch"] == branch
    assert job.output("route")["value"] == megabytes
    others = {"small", "middle", "extra", "large"} - set(dispatched)
    assert {name for name, status in job.statuses().items() if status == "skipped"} >= others


def test_the_join_after_branches_waits_for_the_taken_ones_only() -> None:
    job = JobDriver(BRANCHES)
    job.feed(job.done("size", {"mb": 50}))
    assert names(job.feed(job.done("extra"))) == []
    assert names(job.feed(job.done("middle", {"n": 7}))) == ["after_middle"]
    assert names(job.feed(job.done("after_middle"))) == ["join"]
    assert job.params("join") == {"middle": 7}


def test_a_skip_runs_down_the_whole_path() -> None:
    job = JobDriver(BRANCHES)
    job.feed(job.done("size", {"mb": 5}))
    assert job.statuses()["after_middle"] == "skipped"
    job.feed(job.done("small"))
    assert job.params("join") == {"middle": None}
    assert job.feed(job.done("join", {"x": 1})).result == {"join": {"x": 1}}
    assert job.run.status is JobStatus.COMPLETED


@pytest.mark.parametrize(
    ("value", "message"), [("text", "cannot be applied to 'text'"), (700, "no branch of route fits the value 700")]
)
def test_a_value_that_no_branch_fits_fails_the_job(value: Any, message: str) -> None:
    nodes = {
        **BRANCHES,
        "route": {**BRANCHES["route"], "branches": BRANCHES["route"]["branches"][:2]},
        "large": task("join"),
    }
    job = JobDriver(nodes)
    decision = job.feed(job.done("size", {"mb": value}))
    assert decision.status is JobStatus.FAILED
    assert decision.failed_node == "route"
    assert message in decision.error


# Failure


def test_a_failure_ends_the_job_cancels_what_runs_and_skips_what_has_not_begun() -> None:
    retry = {"max_attempts": 1}
    nodes = {"a": task("c", retry=retry), "b": task("c"), "d": task("c"), "c": task("END")}
    job = JobDriver(nodes, first=["a", "b", "d"])
    job.feed(job.report("d", TaskReport.RUNNING))
    decision = job.feed(job.failed("a", "disk full"))
    assert job.statuses() == {"a": "failed", "b": "cancelled", "c": "skipped", "d": "cancelled"}
    assert decision.cancels == [Cancel("b", SINGLE, 1), Cancel("d", SINGLE, 1)]
    assert (decision.status, decision.failed_node) == (JobStatus.FAILED, "a")
    assert decision.error == "node 'a' failed: disk full"
    assert decision.result is None
    assert job.run.nodes["END"].status is NodeStatus.SKIPPED


def test_what_the_same_decision_wanted_to_send_is_not_sent() -> None:
    job = JobDriver({"a": task("c"), "b": task("END", retry={"max_attempts": 1}), "c": task("END")}, first=["a", "b"])
    decision = job.feed(job.done("a"), job.failed("b"))
    assert decision.dispatches == []
    assert job.statuses()["c"] == "cancelled"


def test_on_failure_continue_lets_the_successor_run_and_see_the_error() -> None:
    params = {
        "error": "{{ nodes.a.error }}",
        "status": "{{ nodes.a.status }}",
        "n": "{{ nodes.a.output.n | default(0) }}",
    }
    nodes = {"a": task("b", on_failure="continue", retry={"max_attempts": 1}), "b": task("END", params=params)}
    job = JobDriver(nodes)
    assert names(job.feed(job.failed("a", "disk full"))) == ["b"]
    assert job.params("b") == {"error": "disk full", "status": "failed", "n": 0}
    job.feed(job.done("b"))
    assert job.run.status is JobStatus.COMPLETED
    assert job.statuses() == {"a": "failed", "b": "completed"}


@pytest.mark.parametrize("on_failure", ["fail", "continue"])
def test_parameters_that_cannot_be_rendered_fail_the_node_without_a_retry(on_failure: str) -> None:
    nodes = {
        "a": task("b"),
        "b": task("c", params={"x": "{{ nodes.a.output.gone }}"}, on_failure=on_failure),
        "c": task("END"),
    }
    job = JobDriver(nodes)
    decision = job.feed(job.done("a", {}))
    assert job.statuses()["b"] == "failed"
    assert "there is no 'gone'" in job.run.nodes["b"].error
    assert names(decision) == ([] if on_failure == "fail" else ["c"])


# Retry


def test_a_failed_attempt_is_sent_again_later_with_a_new_number() -> None:
    job = JobDriver(chain("a", retry={"max_attempts": 3, "backoff": "fixed", "initial_delay_seconds": 7}))
    decision = job.feed(job.failed("a"))
    (again,) = decision.dispatches
    assert (again.attempt, again.retry_count, again.not_before) == (2, 1, NOW + timedelta(seconds=7))
    assert [str(step.target) for step in decision.steps] == ["failed", "ready", "dispatched"]
    assert job.feed(job.failed("a")).dispatches[0].attempt == 3
    assert job.feed(job.failed("a")).status is JobStatus.FAILED
    assert job.run.nodes["a"].failures == 3


@pytest.mark.parametrize("more", [{"retryable": False}, {"error_code": "other"}])
def test_what_the_policy_does_not_allow_is_not_tried_again(more: dict[str, Any]) -> None:
    job = JobDriver(chain("a", retry={"retry_on": ["handler_error"]}))
    assert job.feed(job.failed("a", **more)).status is JobStatus.FAILED


def test_an_abandoned_attempt_is_sent_again_at_once_and_does_not_count() -> None:
    job = JobDriver(chain("a", retry={"max_attempts": 1}))
    for attempt in range(2, 6):
        (again,) = job.feed(job.report("a", TaskReport.ABANDONED)).dispatches
        assert (again.attempt, again.retry_count, again.not_before) == (attempt, 0, None)
    job.feed(job.done("a"))
    assert job.run.status is JobStatus.COMPLETED


# Reports


def test_running_is_noted_once_and_may_never_come() -> None:
    job = JobDriver(chain("a"))
    assert [str(step.target) for step in job.feed(job.report("a", TaskReport.RUNNING)).steps] == ["running"]
    assert job.feed(job.report("a", TaskReport.RUNNING)).steps == []
    assert job.feed(job.done("a")).status is JobStatus.COMPLETED


def test_stale_outcomes_change_nothing() -> None:
    job = JobDriver(chain("a", "b", retry={"initial_delay_seconds": 0}))
    job.feed(job.failed("a"))
    old = [Outcome("a", attempt, TaskReport.COMPLETED) for attempt in (0, 1, 3)]
    other = [
        Outcome("nowhere", 1, TaskReport.COMPLETED),
        Outcome("b", 0, TaskReport.COMPLETED),
        Outcome("START", 1, TaskReport.FAILED),
    ]
    items = [Outcome("a", 2, TaskReport.COMPLETED, 0), Outcome("END", 0, TaskReport.FAILED, 5)]
    decision = job.feed(*old, *other, *items)
    assert decision.stale == [*old, *other, *items]
    assert (decision.nodes, decision.steps, decision.dispatches) == ({}, [], [])


def test_after_the_end_everything_is_stale() -> None:
    job = JobDriver(chain("a"))
    done = job.done("a")
    assert job.feed(done, done).stale == [done]
    decision = job.feed(done, Outcome("nowhere", 1, TaskReport.FAILED))
    assert len(decision.stale) == 2
    assert decision.status is JobStatus.COMPLETED


# The end


def test_without_outputs_the_result_is_that_of_the_nodes_before_the_end() -> None:
    job = JobDriver({"a": task("b"), "b": task("END"), "c": task("END"), "d": task("END")}, first=["a", "c", "d"])
    job.feed(job.done("a", {"n": 0}), job.done("c", {"n": 3}), job.done("d", None))
    assert job.feed(job.done("b", {"n": 2})).result == {"b": {"n": 2}, "c": {"n": 3}}


def test_outputs_are_rendered_at_the_end() -> None:
    job = JobDriver(chain("a"), {"x": "007"}, outputs={"n": "{{ nodes.a.output.n }}", "x": "{{ inputs.x }}", "one": 1})
    assert job.feed(job.done("a", {"n": [1]})).result == {"n": [1], "x": "007", "one": 1}


def test_outputs_that_cannot_be_evaluated_fail_the_job() -> None:
    job = JobDriver(chain("a"), outputs={"n": "{{ nodes.a.output.gone }}"})
    decision = job.feed(job.done("a", {}))
    assert decision.status is JobStatus.FAILED
    assert decision.error.startswith("the outputs cannot be evaluated: ")
    assert "there is no 'gone'" in decision.error
    assert job.statuses() == {"a": "completed"}


def test_fail_ends_the_job_from_outside_once() -> None:
    job = JobDriver(chain("a", "b"))
    for _ in range(2):
        evaluation = Evaluation(job.run, NOW)
        evaluation.fail("the deadline passed")
        job.take(evaluation.decision())
    assert (job.run.status, job.statuses()) == (JobStatus.FAILED, {"a": "cancelled", "b": "skipped"})
    assert job.last.steps == []


def test_a_decision_costs_what_it_changes() -> None:
    job = JobDriver(chain(*(f"n{number}" for number in range(10_000))))
    for number in range(3):
        decision = job.feed(job.done(f"n{number}"))
        assert len(decision.nodes) <= 3
        assert names(decision) == [f"n{number + 1}"]


def test_templates_see_every_node_of_the_job_and_no_other() -> None:
    watch = {
        "all": "{{ nodes }}",
        "count": "{{ nodes | length }}",
        "other": "{{ nodes.nowhere.output | default('none') }}",
    }
    job = JobDriver({"a": task("b"), "b": task("END", params=watch)})
    job.feed(job.done("a", {"n": 1}))
    assert job.params("b")["all"]["a"] == {"status": "completed", "error": None, "output": {"n": 1}}
    assert job.params("b")["all"]["END"] == {"status": "pending", "error": None}
    assert (job.params("b")["count"], job.params("b")["other"]) == (4, "none")
