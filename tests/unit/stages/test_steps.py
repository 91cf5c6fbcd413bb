"""The author's code, run as a step: what it is given, and what becomes of what it returns or raises."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.engine.large import KEY, LargeOutput
from geomill.domain.engine.message import STAGE_TASK_ID
from geomill.domain.engine.stage_job import stage_task_id
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Storage, Zone
from geomill.sdk.outcomes import ItemOutcome, OutcomePages, no_pages
from geomill.sdk.testing import folder_storage
from geomill.stages import StageTask
from geomill.stages.registration import StageJob
from geomill.stages.steps import run_step
from geomill.storage import NO_STORAGE
from tests.unit.stages.jobs import controller, job_of

JOB_ID = "598fc149" + "0" * 56


class _Silent:
    def progress(self, fraction: float, message: str) -> None: ...
    def checkpoint(self, phase: str, data: Any) -> None: ...
    def limit(self, seconds: float | None, message: str) -> None: ...


@dataclass
class Pages:
    """The outcomes of a node, a page at a time, as `outcomes_page` gives them."""

    outcomes: Sequence[ItemOutcome]
    size: int = 2
    requests: list[tuple[str, int, str]] = field(default_factory=list)

    def __call__(self, node_id: str, after: int, having: str) -> str:
        self.requests.append((node_id, after, having))
        matching = [
            outcome for outcome in self.outcomes if outcome.index > after and _has(outcome.output or {}, having)
        ]
        return json.dumps([[outcome.index, outcome.output, outcome.error] for outcome in matching[: self.size]])


def _has(output: dict[str, Any], key: str) -> bool:
    return not key or key in output or KEY in output


def context(
    params: dict[str, Any], storage: Storage = NO_STORAGE, pages: OutcomePages = no_pages
) -> HandlerContext[Any]:
    logger = logging.getLogger()
    return HandlerContext(
        "t", "run", "node", "stages.tried", params, logger, _Silent(), storage=storage, outcome_pages=pages
    )


def step(
    job: StageJob,
    storage: Storage = NO_STORAGE,
    *,
    outcomes: Sequence[ItemOutcome] = (),
    indexes: list[str] | None = None,
    hand_over: bool | None = None,
    pages: Pages | None = None,
    **params: Any,
) -> dict[str, Any]:
    completed = sum(outcome.error is None for outcome in outcomes)
    tasks = {
        "node_id": "before", "total": len(outcomes), "completed": completed, "indexes": indexes, "hand_over": hand_over,
    }  # fmt: skip
    step_params = {"action": "plan", "stage": 1, "job_id": JOB_ID, "tasks": tasks, **params}
    output = run_step("tried", job.definition, job.controller, context(step_params, storage, pages or Pages(outcomes)))
    if "tasks" in output:
        names = output["indexes"] or [str(place) for place in range(output["total"])]
        task_ids = [task.pop(STAGE_TASK_ID) for task in output["tasks"]]
        assert task_ids == [stage_task_id(JOB_ID, step_params["stage"], name) for name in names]
    return output


def done(index: int, **output: Any) -> ItemOutcome:
    return ItemOutcome(index, output)


def failed(index: int, error: str = "no luck") -> ItemOutcome:
    return ItemOutcome(index, error=error)


def plan(*tasks: Any, outcomes: tuple[Any, ...] = (), indexes: list[str] | None = None, **stage: Any) -> dict[str, Any]:
    """Return the plan of the second stage for these tasks."""
    job = job_of({}, stage, made_by=controller(lambda *_: tasks))
    return step(job, stage=2, outcomes=outcomes, indexes=indexes)


def test_a_plan() -> None:
    assert plan({"a": 1}, {"a": 2}) == {"tasks": [{"a": 1}, {"a": 2}], "indexes": None, "total": 2}
    named = plan(StageTask({"a": 1}, "tile_x5_y10"), {"a": 2})
    assert named["indexes"] == ["tile_x5_y10", "1"]


def test_what_the_code_is_given() -> None:
    calls: list[Any] = []
    job = job_of({}, {}, made_by=controller(lambda *arguments: calls.append(arguments) or []))
    outcomes = [done(0, n=1), failed(1)]
    step(job, stage=2, outcomes=outcomes, indexes=["a", "b"], stage_results={"1": {"sum": 1}}, attempt=3)
    ((stage, stage_context),) = calls
    assert (stage, stage_context.stage, stage_context.job_id, stage_context.job_type, stage_context.attempt) == (
        2,
        2,
        JOB_ID,
        "tried",
        3,
    )
    assert dict(stage_context.stage_results) == {1: {"sum": 1}}
    first, second = stage_context.previous_results
    assert (first.task_id, first.task_index, first.result_data) == ("598fc149-s1-a", "a", {"n": 1})
    assert (second.success, second.error_details, second.task_id) == (False, "no luck", "598fc149-s1-b")


@pytest.mark.parametrize(
    ("tasks", "stage", "words"),
    [
        (({"a": 1}, {"a": 2}), {"single": True}, "it must have exactly one task, not 2"),
        ((), {"single": True}, "it must have exactly one task, not 0"),
        ((7,), {}, "task 0 is not a mapping of parameters but 7"),
        ((StageTask({}, "x"), StageTask({}, "x")), {}, 'two tasks have the index "x"'),
        ((StageTask({}, "0"), {}, StageTask({}, "1")), {}, 'two tasks have the index "1"'),
        ((StageTask({}, "with space"),), {}, "cannot be the index of a task"),
        ((StageTask({}, ""),), {}, "cannot be the index of a task"),
        ((StageTask({}, "x" * 101),), {}, "cannot be the index of a task"),
        (({"a": float("nan")},), {}, "cannot be stored"),
        (({"a": object()},), {}, "cannot be stored"),
    ],
)
def test_what_cannot_be_a_task(tasks: tuple[Any, ...], stage: dict[str, Any], words: str) -> None:
    with pytest.raises(HandlerError, match="stage 2") as refused:
        plan(*tasks, **stage)
    assert words in str(refused.value)
    assert not refused.value.retryable


def test_hand_over_fills_in_what_the_task_does_not_say() -> None:
    gave = (done(0, next_stage_params={"a": 1, "b": 2}), done(1, next_stage_params={"a": 3}))
    assert plan({"b": 9}, {}, outcomes=gave)["tasks"] == [{"a": 1, "b": 9}, {"a": 3}]
    swapped = plan(StageTask({}, "y"), StageTask({}, "x"), outcomes=gave, indexes=["x", "y"])
    assert swapped["tasks"] == [{"a": 3}, {"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("tasks", "outcomes", "words"),
    [
        (({}, {}), (done(0, next_stage_params={}), done(1)), "task '1' would get next_stage_params"),
        (({}, {}), (done(0, next_stage_params={}), failed(1)), "stage 1 gave none to that index"),
        (({},), (done(0, next_stage_params={}), done(1, next_stage_params={})), "which stage 2 lacks"),
    ],
)
def test_a_counterpart_that_is_missing(tasks: tuple[Any, ...], outcomes: tuple[Any, ...], words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        plan(*tasks, outcomes=outcomes)


def test_what_the_code_raises() -> None:
    def wrong(*_: Any) -> Any:
        raise KeyError("bounds")

    with pytest.raises(HandlerError, match=r"create_stage_tasks of stage 1 \(s1\) raised KeyError") as refused:
        step(job_of({}, made_by=controller(wrong)))
    assert (refused.value.retryable, refused.value.error_code) == (False, "controller_error")
    with pytest.raises(HandlerError, match="aggregate_stage_results of stage 1"):
        step(job_of({}, made_by=controller(aggregate=wrong)), action="aggregate", outcomes=[done(0)])

    def busy(*_: Any) -> Any:
        raise HandlerError("later", code="busy")

    with pytest.raises(HandlerError) as again:
        step(job_of({}, made_by=controller(busy)))
    assert (again.value.retryable, again.value.error_code) == (True, "busy")


def test_what_a_stage_comes_to_without_code_of_its_own() -> None:
    job = job_of({})
    aggregated = step(job, action="aggregate", outcomes=[done(0, n=1, next_stage_params={"a": 1})])
    assert aggregated == {"result": {"n": 1}, "counts": {"total": 1, "completed": 1, "failed": 0}, "hand_over": True}
    many = step(job, action="aggregate", outcomes=[done(0), failed(1), done(2)])
    assert many["result"] == {"total": 3, "completed": 2, "failed": 1}
    assert step(job, action="aggregate", outcomes=[])["result"] == {"total": 0, "completed": 0, "failed": 0}


def test_large_results_go_to_the_store_and_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    storage = folder_storage(tmp_path)
    text = "x" * 1_100_000
    lengths = controller(
        lambda _, stage_context: [{"n": len(stage_context.stage_results[1]["text"])}], lambda *_: {"text": text}
    )
    job = job_of({}, {}, made_by=lengths)
    reference = step(job, storage, action="aggregate", outcomes=[done(0)])["result"]
    assert reference.keys() == {"large_metadata_path", "sha256", "size"}
    assert step(job, storage, stage=2, stage_results={"1": reference})["tasks"] == [{"n": len(text)}]


def test_a_task_whose_result_lies_in_the_store(tmp_path: Path) -> None:
    storage = folder_storage(tmp_path)
    content = b'{"next_stage_params": {"a": 1}, "text": "much"}'
    large = LargeOutput.of("run", "stage1_tasks.0", 1, content)
    storage.sync.put_bytes(ObjectName(Zone.SILVER, large.container, large.path), content)
    task_results: list[Any] = []
    job = job_of(
        {}, {}, made_by=controller(lambda _, stage_context: task_results.extend(stage_context.previous_results) or [{}])
    )
    assert step(job, storage, stage=2, outcomes=[ItemOutcome(0, large.output())])["tasks"] == [{"a": 1}]
    assert (task_results[0].result_data, task_results[0].load()["text"]) == ({}, "much")
    assert task_results[0].large_metadata_path == f"silver/results/{large.path}"


def test_results_are_read_only_when_the_code_looks_at_them() -> None:
    pages = Pages([done(place, n=place) for place in range(5)])
    counted = job_of({}, made_by=controller(aggregate=lambda _, results: {"count": len(results)}))
    tasks = {"action": "aggregate", "outcomes": pages.outcomes, "pages": pages}
    aggregated = step(counted, **tasks)
    assert (aggregated["result"], aggregated["hand_over"]) == ({"count": 5}, None)
    assert pages.requests == []
    summed = job_of(
        {}, made_by=controller(aggregate=lambda _, results: {"sum": sum(r.result_data["n"] for r in results)})
    )
    aggregated = step(summed, **tasks)
    assert (aggregated["result"], aggregated["hand_over"]) == ({"sum": 10}, False)
    assert pages.requests == [("before", -1, ""), ("before", 1, ""), ("before", 3, "")]


def test_a_plan_reads_of_the_stage_before_what_was_handed_over() -> None:
    pages = Pages([done(0), done(1), failed(2)])
    job = job_of({}, {}, made_by=controller(lambda *_: [{}]))
    assert step(job, stage=2, outcomes=pages.outcomes, pages=pages)["total"] == 1
    assert pages.requests == [("before", -1, "next_stage_params")]
    pages.requests.clear()
    assert step(job, stage=2, outcomes=pages.outcomes, pages=pages, hand_over=False)["total"] == 1
    assert pages.requests == []
