"""The contracts of the example handlers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from geomill.handlers.examples.chunk_processor import chunk_processor
from geomill.handlers.examples.echo import echo
from geomill.handlers.examples.fail import fail
from geomill.handlers.examples.flaky_echo import flaky_echo
from geomill.handlers.examples.hello_world import hello_world
from geomill.handlers.examples.multi_phase import multi_phase
from geomill.handlers.examples.size_check import size_check
from geomill.handlers.examples.sleep import sleep
from geomill.sdk import SavedCheckpoint
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import run_handler

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("name", "queue", "seconds"),
    [
        ("echo", "functionapp-tasks", 60),
        ("hello_world", "functionapp-tasks", 30),
        ("sleep", "functionapp-tasks", 300),
        ("fail", "functionapp-tasks", 30),
        ("flaky_echo", "functionapp-tasks", 60),
        ("multi_phase", "container-tasks", 600),
        ("size_check", "functionapp-tasks", 60),
        ("chunk_processor", "functionapp-tasks", 300),
    ],
)
def test_every_example_is_registered(name: str, queue: str, seconds: float) -> None:
    info = load_handlers()[name].info
    assert (info.queue, info.timeout_seconds) == (queue, seconds)
    assert info.params is not None
    assert info.description


# hello_world


@pytest.mark.parametrize(
    ("params", "message"),
    [({}, "Hello, World!"), ({"name": "Ada"}, "Hello, Ada!"), ({"name": "Ada", "more": [1]}, "Hello, Ada!")],
)
def test_hello_world_greets(params: dict[str, Any], message: str) -> None:
    assert run_handler(hello_world, params).output == {"message": message}


# echo


@pytest.mark.parametrize("params", [{}, {"a": 1, "b": {"c": [None, "x"]}}])
def test_echo_returns_what_it_was_given(params: dict[str, Any]) -> None:
    run = run_handler(echo, params)
    assert run.output == {
        "echoed_params": params,
        "handler": "echo",
        "task_id": "test-job:node:1",
        "steps_completed": 1,
        "completed_steps": ["step_1"],
    }
    assert run.checkpoints == []


def test_echo_saves_a_checkpoint_after_every_step_but_the_last() -> None:
    run = run_handler(echo, {"steps": 3, "step_delay": 0})
    assert run.output["echoed_params"] == {"steps": 3, "step_delay": 0}
    assert run.output["completed_steps"] == ["step_1", "step_2", "step_3"]
    assert [saved.phase for saved in run.checkpoints] == ["step_1", "step_2"]
    assert run.progress == [(1 / 3, "step 1 of 3"), (2 / 3, "step 2 of 3"), (1.0, "step 3 of 3")]


def test_echo_resumes_after_its_checkpoint() -> None:
    first = run_handler(echo, {"steps": 4, "step_delay": 0})
    run = run_handler(echo, {"steps": 4, "step_delay": 0}, checkpoint=first.checkpoints[1], attempt=2)
    assert [message for _, message in run.progress] == ["step 3 of 4", "step 4 of 4"]
    assert run.output["steps_completed"] == 4
    assert run.output["completed_steps"] == first.output["completed_steps"]


def test_echo_stops_when_it_is_cancelled() -> None:
    answers = iter([False, True])
    run = run_handler(echo, {"steps": 3, "step_delay": 0}, cancelled=lambda: next(answers))
    assert run.ended.error_code == "cancelled"
    assert [saved.phase for saved in run.checkpoints] == ["step_1"]


@pytest.mark.parametrize("params", [{"steps": 0}, {"steps": "many"}, {"step_delay": -1}])
def test_echo_refuses_what_it_cannot_do(params: dict[str, Any]) -> None:
    assert run_handler(echo, params).ended.error_code == "invalid_params"


# sleep and fail


def test_sleep_sleeps_and_reports() -> None:
    run = run_handler(sleep, {"duration_seconds": 0.01})
    assert run.output == {"slept_for": 0.01}
    assert run.progress[-1][0] == 1.0
    assert run_handler(sleep, {"duration_seconds": 0}).progress == []


def test_sleep_wakes_when_it_is_cancelled() -> None:
    assert run_handler(sleep, {"duration_seconds": 3600}, cancelled=lambda: True).ended.error_code == "cancelled"


@pytest.mark.parametrize(
    ("params", "message", "retryable"),
    [({}, "Intentional failure for testing", True), ({"error_message": "boom", "retryable": False}, "boom", False)],
)
def test_fail_fails(params: dict[str, Any], message: str, retryable: bool) -> None:
    ended = run_handler(fail, params).ended
    assert (ended.success, ended.error_message, ended.retryable) == (False, message, retryable)
    assert ended.error_code == "intentional"


# flaky_echo


def test_flaky_echo_fails_exactly_so_many_times() -> None:
    runs = [run_handler(flaky_echo, {"fail_times": 2, "x": 1}, attempt=attempt) for attempt in (1, 2, 3, 4)]
    assert [run.success for run in runs] == [False, False, True, True]
    assert runs[0].ended.retryable
    assert runs[0].error == "random failure of attempt 1"
    assert runs[2].output["echoed_params"] == {"fail_times": 2, "x": 1}
    assert runs[2].output["retry_count"] == 2


@pytest.mark.parametrize(("rate", "success"), [("0", True), (0, True), ("1", False), (1.0, False)])
def test_flaky_echo_s_rate_may_be_certain(rate: Any, success: bool) -> None:
    assert run_handler(flaky_echo, {"failure_rate": rate}).success is success


def test_flaky_echo_takes_its_rate_as_text() -> None:
    random.seed(20260101)
    runs = [run_handler(flaky_echo, {"failure_rate": "0.3"}) for _ in range(200)]
    assert 40 < sum(not run.success for run in runs) < 80
    assert next(run for run in runs if run.success).output["echoed_params"] == {"failure_rate": 0.3}


@pytest.mark.parametrize("rate", ["often", 1.5, -0.1])
def test_flaky_echo_refuses_a_rate_that_is_none(rate: Any) -> None:
    assert run_handler(flaky_echo, {"failure_rate": rate}).ended.error_code == "invalid_params"


# multi_phase


def test_multi_phase_saves_every_phase() -> None:
    run = run_handler(multi_phase, {"phases": 2, "phase_seconds": 0})
    assert run.output == {"phases_completed": 2, "results": ["phase_1_complete", "phase_2_complete"]}
    assert run.checkpoints == [
        SavedCheckpoint("phase_1", {"results": ["phase_1_complete"]}),
        SavedCheckpoint("phase_2", {"results": ["phase_1_complete", "phase_2_complete"]}),
    ]
    assert run.progress == [(0.5, "phase 1"), (1.0, "phase 2")]


def test_multi_phase_resumes_after_the_last_phase_that_was_saved() -> None:
    saved = SavedCheckpoint("phase_2", {"results": ["phase_1_complete", "phase_2_complete"]})
    run = run_handler(multi_phase, {"phases": 3, "phase_seconds": 0}, checkpoint=saved, attempt=2)
    assert [checkpoint.phase for checkpoint in run.checkpoints] == ["phase_3"]
    assert run.output["results"] == ["phase_1_complete", "phase_2_complete", "phase_3_complete"]


def test_multi_phase_stops_when_it_is_cancelled() -> None:
    run = run_handler(multi_phase, {"phases": 3, "phase_seconds": 0}, cancelled=lambda: True)
    assert (run.success, run.checkpoints) == (False, [])


# size_check and chunk_processor


@pytest.mark.parametrize(
    ("size", "route", "queue"),
    [
        (0, "light", "functionapp-tasks"),
        (100 * MEGABYTE - 1, "light", "functionapp-tasks"),
        (100 * MEGABYTE, "medium", "container-tasks"),
        (1024 * MEGABYTE - 1, "medium", "container-tasks"),
        (1024 * MEGABYTE, "heavy", "container-tasks-heavy"),
        (10**15, "heavy", "container-tasks-heavy"),
    ],
)
def test_size_check_routes_by_size(size: int, route: str, queue: str) -> None:
    expected = {"size_bytes": size, "route": route, "recommended_queue": queue}
    assert run_handler(size_check, {"size_bytes": size}).output == expected


def test_size_check_refuses_a_negative_size() -> None:
    assert run_handler(size_check, {"size_bytes": -1}).ended.error_code == "invalid_params"


@pytest.mark.parametrize(
    ("data", "count"), [([1, 2, 3], 3), ({"a": 1, "b": 2}, 2), ([], 0), ({}, 0), ("text", 1), (7, 1), (None, 1)]
)
def test_chunk_processor_counts(data: Any, count: int) -> None:
    output = run_handler(chunk_processor, {"chunk_id": "c1", "chunk_data": data}).output
    assert output == {"chunk_id": "c1", "processed": True, "item_count": count}


def test_chunk_processor_keeps_the_type_of_the_id() -> None:
    assert run_handler(chunk_processor, {"chunk_id": 7}).output["chunk_id"] == 7
    assert run_handler(chunk_processor).output == {"chunk_id": "unknown", "processed": True, "item_count": 0}
