"""The evaluator by example: fan_out and fan_in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from geomill.domain.engine.decision import Aggregate, Cancel, Outcome
from geomill.domain.engine.evaluator import Evaluation
from geomill.domain.engine.task import TaskReport
from geomill.domain.states import JobStatus, NodeStatus
from tests.unit.domain.engine.driver import JobDriver, items, names, task
from tests.unit.domain.engine.simulation import NOW

ONCE = {"max_attempts": 1}


def fan_out(source: Any = "{{ inputs.items }}", **more: Any) -> dict[str, Any]:
    body = {"handler": "h", "params": {"value": "{{ item }}", "at": "{{ index }}"}, **more.pop("task", {})}
    return {"type": "fan_out", "source": source, "task": body, "next": "all", **more}


def job_of(count: int, *, window: int = 5_000, aggregation: str = "collect", **more: Any) -> JobDriver:
    gather = {"type": "fan_in", "aggregation": aggregation, "next": "after"}
    nodes = {"many": fan_out(**more), "all": gather, "after": task("END", params={"n": "{{ nodes.all.output.count }}"})}
    return JobDriver(nodes, {"items": [f"i{number}" for number in range(count)]}, window=window)


def all_done(job: JobDriver, *indices: int) -> list[Outcome]:
    return [job.done("many", {"n": index}, item=index) for index in indices]


def test_each_item_is_sent_with_its_value_and_its_index() -> None:
    job = job_of(3)
    assert items(job.last) == [0, 1, 2]
    assert [job.params("many", index) for index in range(3)] == [{"value": f"i{n}", "at": n} for n in range(3)]
    assert job.statuses()["many"] == "running"


def test_the_fan_in_gets_the_outputs_in_the_order_of_the_items() -> None:
    job = job_of(3)
    assert names(job.feed(*all_done(job, 2, 0))) == []
    assert names(job.feed(*all_done(job, 1))) == ["after"]
    assert job.output("many") == {"total": 3, "completed": 3, "failed": 0}
    assert job.output("all") == {"results": [{"n": 0}, {"n": 1}, {"n": 2}], "count": 3}
    assert job.params("after") == {"n": 3}
    assert job.run.fan_outs == {}


def test_no_items_flow_on_at_once_and_the_fan_in_gets_an_empty_list() -> None:
    job = job_of(0)
    assert job.output("many") == {"total": 0, "completed": 0, "failed": 0}
    assert job.output("all") == {"results": [], "count": 0}
    assert names(job.last) == ["after"]


@pytest.mark.parametrize("source", ["text", 3, None, {"a": 1}])
def test_a_source_that_is_no_list_fails_the_job(source: Any) -> None:
    job = JobDriver(
        {"many": fan_out("{{ inputs.source }}"), "all": {"type": "fan_in", "next": "END"}}, {"source": source}
    )
    assert job.run.status is JobStatus.FAILED
    assert "must be a list" in job.last.error


@pytest.mark.parametrize(
    ("size", "expected"), [(1, [["i0"], ["i1"], ["i2"]]), (2, [["i0", "i1"], ["i2"]]), (9, [["i0", "i1", "i2"]])]
)
def test_a_batch_hands_each_task_a_list(size: int, expected: list[list[str]]) -> None:
    job = job_of(3, batch_size=size)
    assert [job.params("many", index)["value"] for index in items(job.last)] == expected


def test_max_parallel_limits_what_is_under_way_and_each_end_sends_one_more() -> None:
    job = job_of(5, max_parallel=2)
    assert items(job.last) == [0, 1]
    assert items(job.feed(*all_done(job, 1))) == [2]
    assert items(job.feed(*all_done(job, 0, 2))) == [3, 4]
    assert items(job.feed(*all_done(job, 3))) == []
    assert names(job.feed(*all_done(job, 4))) == ["after"]


def test_a_retry_keeps_its_place_under_max_parallel() -> None:
    job = job_of(3, max_parallel=1)
    assert items(job.feed(job.failed("many", item=0))) == [0]
    assert items(job.feed(*all_done(job, 0))) == [1]


def test_the_window_is_refilled_when_half_of_it_is_free() -> None:
    job = job_of(9, window=4)
    assert items(job.last) == [0, 1, 2, 3]
    assert items(job.feed(*all_done(job, 0))) == []
    assert items(job.feed(*all_done(job, 1))) == [4, 5]
    assert items(job.feed(*all_done(job, 2, 3, 4, 5))) == [6, 7, 8]


def test_a_result_of_a_large_fan_out_touches_a_counter() -> None:
    job = job_of(4_000)
    decision = job.feed(*all_done(job, 17))
    assert decision.nodes == {}
    assert list(decision.fan_outs["many"].changed) == [17]
    assert (job.run.fan_outs["many"].completed, job.run.fan_outs["many"].total) == (1, 4_000)


# Failure of items


def test_a_failed_item_fails_the_job_and_cancels_the_others() -> None:
    job = job_of(4, max_parallel=3, task={"retry": ONCE})
    job.feed(job.report("many", TaskReport.RUNNING, item=2))
    decision = job.feed(*all_done(job, 0), job.failed("many", "broken", item=1))
    assert (decision.status, decision.failed_node) == (JobStatus.FAILED, "many")
    assert decision.error == "node 'many' failed: item 1: broken"
    assert decision.cancels == [Cancel("many", 2, 1)]
    assert decision.dispatches == []
    assert [str(job.rows["many", index].status) for index in range(3)] == ["completed", "failed", "cancelled"]
    assert ("many", 3) not in job.rows  # it is not sent first, only to be called back
    assert job.statuses() == {"many": "failed", "all": "skipped", "after": "skipped"}


@pytest.mark.parametrize(
    ("on_failure", "failures", "status"),
    [
        ({"tolerate": 2}, 2, "completed"),
        ({"tolerate": 2}, 3, "failed"),
        ({"tolerate": "20%"}, 2, "completed"),
        ({"tolerate": "20%"}, 3, "failed"),
        ({"tolerate": "25%"}, 2, "completed"),
        ("tolerate: 1", 2, "failed"),
        ("continue", 10, "completed"),
        ("fail", 1, "failed"),
    ],
)
def test_so_many_items_may_fail(on_failure: Any, failures: int, status: str) -> None:
    job = job_of(10, on_failure=on_failure, task={"retry": ONCE})
    job.feed(*(job.failed("many", item=index) for index in range(failures)), *all_done(job, *range(failures, 10)))
    assert job.statuses()["many"] == status
    if status == "completed":
        assert job.output("many") == {"total": 10, "completed": 10 - failures, "failed": failures}
        assert job.output("all")["count"] == 10 - failures


def test_a_share_is_counted_exactly() -> None:
    """18.4 % of 375 is 69; in floating point it is a little less."""
    job = job_of(375, on_failure={"tolerate": "18.4%"}, task={"retry": ONCE})
    assert job.feed(*(job.failed("many", item=index) for index in range(69))).status is JobStatus.RUNNING
    assert job.feed(job.failed("many", item=69)).status is JobStatus.FAILED


def test_failures_of_earlier_decisions_count() -> None:
    job = job_of(3, on_failure={"tolerate": 1}, task={"retry": ONCE})
    assert job.feed(job.failed("many", item=0)).status is JobStatus.RUNNING
    assert job.feed(job.failed("many", item=1)).status is JobStatus.FAILED


def test_an_item_is_tried_again_by_its_own_count() -> None:
    retry = {"max_attempts": 2, "backoff": "fixed", "initial_delay_seconds": 3}
    job = job_of(2, task={"retry": retry}, on_failure="continue")
    (again,) = job.feed(job.failed("many", item=1)).dispatches
    assert (again.item_index, again.attempt, again.retry_count) == (1, 2, 1)
    assert again.not_before == NOW + timedelta(seconds=3)
    job.feed(job.report("many", TaskReport.ABANDONED, item=0))
    assert (job.sent["many", 0].attempt, job.sent["many", 0].retry_count) == (2, 0)
    job.feed(job.failed("many", item=1))
    assert job.rows["many", 1].status is NodeStatus.FAILED
    assert job.rows["many", 1].retry_count == 2


@pytest.mark.parametrize(
    ("on_failure", "status"), [("fail", "failed"), ("continue", "completed"), ({"tolerate": 1}, "failed")]
)
def test_items_whose_parameters_cannot_be_rendered_have_failed(on_failure: Any, status: str) -> None:
    job = job_of(4, on_failure=on_failure, task={"params": {"x": "{{ 1 / (index % 2) }}"}})
    assert items(job.last) == ([] if status == "failed" else [1, 3])
    if status == "completed":
        job.feed(*all_done(job, 1, 3))
    assert job.statuses()["many"] == status


def test_reports_of_items_that_are_not_under_way_are_stale() -> None:
    job = job_of(3, max_parallel=2)
    done = all_done(job, 0)
    job.feed(*done)
    stale = [*done, Outcome("many", 1, TaskReport.COMPLETED, 99), Outcome("many", 2, TaskReport.FAILED, 1)]
    stale += [Outcome("many", 1, TaskReport.COMPLETED)]
    assert job.feed(*stale).stale == stale


def test_running_is_noted_once_per_item() -> None:
    job = job_of(2)
    first, again = (job.feed(job.report("many", TaskReport.RUNNING, item=1)) for _ in range(2))
    assert (first.quiet_steps, first.steps) == (1, [])
    assert (again.quiet_steps, again.steps) == (0, [])
    assert job.run.fan_outs["many"].in_flight[1].status is NodeStatus.RUNNING


# fan_in


def test_a_fan_in_asks_for_the_nodes_that_led_to_it_in_order() -> None:
    nodes = {
        "b": task("all"),
        "a": task("all", on_failure="continue", retry=ONCE),
        "route": {
            "type": "conditional",
            "condition_field": 1,
            "branches": [{"default": True, "next": "END"}, {"condition": "== 2", "next": "all"}],
        },
        "c": task("all"),
        "all": {"type": "fan_in", "next": "END"},
    }
    job = JobDriver(nodes, first=["b", "a", "route", "c"])
    evaluation = Evaluation(job.run, NOW)
    evaluation.feed([job.done("c"), job.failed("a"), job.done("b")])
    assert evaluation.take_aggregates() == [Aggregate("all", 1, ("b", "c"))]
    assert evaluation.take_aggregates() == []
    assert evaluation.decision().nodes["all"].status is NodeStatus.READY


def test_a_fan_in_whose_outputs_cannot_be_had_fails_the_job() -> None:
    job = JobDriver({"a": task("all"), "all": {"type": "fan_in", "next": "END"}})
    evaluation = Evaluation(job.run, NOW)
    evaluation.feed([job.done("a")])
    (fan_in,) = evaluation.take_aggregates()
    evaluation.feed(
        [
            Outcome("all", fan_in.attempt, TaskReport.RUNNING),
            Outcome("all", fan_in.attempt, TaskReport.FAILED, error="too large"),
        ]
    )
    assert evaluation.decision().status is JobStatus.FAILED
    assert evaluation.decision().error == "node 'all' failed: too large"


def test_who_takes_over_asks_again_for_what_a_fan_in_waits_for() -> None:
    job = JobDriver({"a": task("all"), "all": {"type": "fan_in", "next": "END"}})
    evaluation = Evaluation(job.run, NOW)
    evaluation.feed([job.done("a", 5)])
    assert len(evaluation.take_aggregates()) == 1
    job.take(evaluation.decision())
    successor = job.restored()
    successor.carry_on()
    (fan_in,) = successor.take_aggregates()
    assert fan_in == Aggregate("all", 1, ("a",))
    successor.feed([job.answer(fan_in)])
    assert job.take(successor.decision()).result == {"all": {"results": [5], "count": 1}}


def test_who_takes_over_goes_on_with_a_fan_out() -> None:
    job = job_of(5, max_parallel=2, on_failure="continue", task={"retry": ONCE})
    job.feed(*all_done(job, 0), job.failed("many", item=1))
    successor = job.restored()
    assert (job.run.fan_outs["many"].completed, job.run.fan_outs["many"].failed) == (1, 1)
    successor.carry_on()
    assert successor.decision().dispatches == []
    successor.feed(all_done(job, 3))
    assert items(job.take(successor.decision())) == [4]
    job.feed(*all_done(job, 2, 4))
    assert job.output("many") == {"total": 5, "completed": 4, "failed": 1}


def test_one_decision_sends_a_slice_and_says_that_there_is_more() -> None:
    job = job_of(12, window=4)
    evaluation = Evaluation(job.run, NOW, window=10, slices=(2, 2))
    evaluation.feed(all_done(job, 0, 1))
    slices = [job.take(evaluation.decision())]
    for _ in range(2):
        evaluation = Evaluation(job.run, NOW, window=10, slices=(2, 2))
        evaluation.send_more()
        slices.append(job.take(evaluation.decision()))
    assert [items(decision) for decision in slices] == [[4, 5], [6, 7], []]
    assert [decision.more for decision in slices] == [True, True, False]


def test_the_params_of_a_task_may_be_the_whole_item() -> None:
    node = {"type": "fan_out", "source": [{"a": 1}, {"b": 2}], "task": {"handler": "h", "params": "{{ item }}"}}
    driver = JobDriver({"each": {**node, "next": "END"}})
    assert [driver.params("each", item) for item in (0, 1)] == [{"a": 1}, {"b": 2}]


def test_params_that_are_no_mapping_fail_their_item() -> None:
    node = {"type": "fan_out", "source": [{"a": 1}, 7], "task": {"handler": "h", "params": "{{ item }}"}}
    driver = JobDriver({"each": {**node, "next": "END"}})
    assert driver.run.status.value == "failed"
    assert "must be a mapping, not '7'" in driver.last.error
