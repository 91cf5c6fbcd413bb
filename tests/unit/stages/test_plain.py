"""Stage jobs of plain functions, and how stage jobs are found."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from geomill.domain.engine.stage_job import stage_job_id, stage_task_id
from geomill.errors import InputsError, NotFoundError, SettingsError
from geomill.sdk import HandlerError
from geomill.sdk.registration import MARK
from geomill.sdk.registry import load_handlers
from geomill.stages import plain_stage_job
from geomill.stages.registration import STAGE_MARK, StageJob
from geomill.stages.registry import StageJobs, load_stage_jobs
from tests.unit.stages.jobs import job_of
from tests.unit.stages.test_steps import JOB_ID, done, failed, step

STAGES = [
    {"number": 1, "name": "one", "task_type": "echo", "parallelism": "single"},
    {"number": 2, "name": "two", "task_type": "echo", "parallelism": "fan_out"},
]


def module(name: str, **functions: Any) -> ModuleType:
    plain_module = ModuleType(name)
    tasks = [{"parameters": {}}]
    defaults = {
        "stages": STAGES,
        "validate_job_parameters": dict,
        "create_tasks_for_stage": lambda **_: tasks,
        **functions,
    }
    for key, value in defaults.items():
        setattr(plain_module, key, value)
    return plain_module


def plain(**functions: Any) -> StageJob:
    job: StageJob = getattr(plain_stage_job("tried")(module("plain_module", **functions)), STAGE_MARK)
    return job


def test_functions_get_what_they_expect() -> None:
    calls: list[dict[str, Any]] = []
    job = plain(create_tasks_for_stage=lambda **arguments: calls.append(arguments) or [{"parameters": {"a": 1}}])
    assert step(job, parameters={"n": 1})["tasks"] == [{"a": 1}]
    step(job, stage=2, outcomes=[done(0, n=2), failed(1)])
    assert calls[0] == {"stage": 1, "job_params": {"n": 1}, "job_id": JOB_ID, "previous_results": None}
    assert calls[1]["previous_results"] == [
        {"success": True, "task_id": "598fc149-s1-0", "result": {"n": 2}},
        {"success": False, "task_id": "598fc149-s1-1", "error": "no luck"},
    ]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"a": 1}, "is not a dict with 'parameters'"),
        ({"parameters": {}, "task_type": "other"}, "has the type 'other', the stage has 'echo'"),
        ({"parameters": {}, "task_id": "00000000-s1-x"}, "does not begin with '598fc149-s1-'"),
    ],
)
def test_tasks_that_cannot_be(task: dict[str, Any], words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        step(plain(create_tasks_for_stage=lambda **_: [task]))


def test_the_index_is_what_is_left_of_the_task_id() -> None:
    task = {"task_id": stage_task_id(JOB_ID, 1, "cog-0_0"), "parameters": {}}
    assert step(plain(create_tasks_for_stage=lambda **_: [task]))["indexes"] == ["cog-0_0"]


def test_own_aggregation_and_schema() -> None:
    job = plain(aggregate_stage_results=lambda stage, results: {"n": len(results)}, parameters_schema={"title": "mine"})
    assert step(job, action="aggregate", outcomes=[done(0)])["result"] == {"n": 1}
    assert job.controller.parameters_schema() == {"title": "mine"}


def test_parameters_that_are_refused() -> None:
    def validate(params: dict[str, Any]) -> dict[str, Any]:
        return {"n": int(params["n"])}

    job = plain(validate_job_parameters=validate)
    assert job.validate({"n": "7"}) == {"n": 7}
    with pytest.raises(InputsError, match="n: the parameter is missing"):
        job.validate({})
    with pytest.raises(InputsError, match="invalid literal"):
        job.validate({"n": "x"})
    with pytest.raises(InputsError, match="must be an object"):
        job.validate([])


def test_a_function_that_is_missing() -> None:
    with pytest.raises(SettingsError, match="has no function validate_job_parameters"):
        plain(validate_job_parameters=None)


def test_the_id_is_of_the_type_and_the_canonical_parameters() -> None:
    assert stage_job_id("a", {"x": 1, "y": [2]}) == stage_job_id("a", {"y": [2], "x": 1})
    assert stage_job_id("a", {"x": 1}) != stage_job_id("b", {"x": 1})
    assert stage_job_id("a", {"x": 1}) != stage_job_id("a", {"x": 2})
    assert len(stage_job_id("a", {})) == 64


def test_found_like_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_module = module("found_like_handlers")
    plain_module.here = plain_stage_job("from_module")(plain_module)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, plain_module.__name__, plain_module)
    jobs = load_stage_jobs([plain_module.__name__])
    assert {"from_module", "hello_world", "process_large_raster"} <= set(jobs)
    handler = load_handlers([plain_module.__name__])["stages.from_module"]
    assert (handler.function.__module__, handler.isolated) == (plain_module.__name__, True)
    assert getattr(plain_module, MARK) is handler
    with pytest.raises(NotFoundError, match="did you mean 'hello_world'"):
        jobs["helo_world"]
    other = module("found_twice")
    other.here = plain_stage_job("from_module")(other)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, other.__name__, other)
    with pytest.raises(SettingsError, match="two stage jobs are called 'from_module'"):
        load_stage_jobs([plain_module.__name__, other.__name__])


def test_a_mapping_of_job_types() -> None:
    jobs = StageJobs([job_of({})])
    assert (list(jobs), len(jobs), "tried" in jobs, "other" in jobs) == (["tried"], 1, True, False)
