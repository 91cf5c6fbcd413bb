"""Stage jobs from submission to their end, on a real engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from geomill.domain.engine.stage_job import StageStatus
from geomill.engine.maintenance.retention import Retention, RetentionOptions
from geomill.errors import InputsError, NotFoundError
from geomill.store import stage_jobs
from tests.integration.stages.conftest import StagePlatform

ALIKE = (22395, 117620)
"""Jobs with these notes have ids that begin with the same eight characters."""


async def test_hello_world(platform: StagePlatform) -> None:
    """Its code runs in a process of its own."""
    view = await platform.complete("hello_world", {"name": "Ada", "greetings": 2})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert view.result == {
        "stage_1": {"greetings": ["Hello, Ada 1!", "Hello, Ada 2!"], "total": 2},
        "stage_2": {"answers": 2},
    }
    assert [(stage.status, stage.total, stage.completed) for stage in view.stages] == [
        (StageStatus.COMPLETED, 2, 2)
    ] * 2
    assert view.stage == 2
    assert view.fraction == 1.0


async def test_results_accumulate_from_stage_to_stage(platform: StagePlatform) -> None:
    view = await platform.complete("counting", {"widths": [2, 3, 1]})
    assert view.result == {
        "stage_1": {"sum": 2, "tasks": 2, "failed": []},
        "stage_2": {"sum": 9, "tasks": 3, "failed": []},
        "stage_3": {"sum": 10, "tasks": 1, "failed": []},
    }
    assert view.stage_results == view.result


async def test_a_stage_may_have_no_tasks(platform: StagePlatform) -> None:
    view = await platform.complete("counting", {"widths": [0, 0, 2]})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert [stage.total for stage in view.stages] == [0, 0, 2]


@pytest.mark.parametrize("stage", [1, 2, 3])
async def test_a_failure_in_any_stage_fails_the_job_at_once(platform: StagePlatform, stage: int) -> None:
    view = await platform.complete("counting", {"widths": [2, 2, 2], "fail_stage": stage, "fail_index": 1})
    assert view.latest.status is StageStatus.FAILED
    assert view.latest.error == f"stage {stage}, task 1: this one fails"
    assert [stage_view.status for stage_view in view.stages] == [
        *[StageStatus.COMPLETED] * (stage - 1),
        StageStatus.FAILED,
        *[StageStatus.QUEUED] * (3 - stage),
    ]
    assert view.stage == stage
    assert list(view.stage_results) == [f"stage_{number}" for number in range(1, stage)]


async def test_what_the_authors_code_raises_names_the_method_and_is_not_tried_again(platform: StagePlatform) -> None:
    view = await platform.complete("counting", {"raise_in": "plan 2"})
    assert "create_stage_tasks of stage 2 (stage 2) raised ValueError" in (view.latest.error or "")
    assert await platform.rows("SELECT retry_count FROM dagapp.dag_node_states WHERE node_id = 'stage2_plan'") == [
        {"retry_count": 1}
    ]


async def test_tasks_may_fail_where_it_is_allowed(platform: StagePlatform) -> None:
    view = await platform.complete("partial", {"widths": [3, 2], "fail_stage": 1, "fail_index": 1})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert view.stage_results["stage_1"] == {"sum": 2, "tasks": 3, "failed": ["1"]}
    assert (view.stages[0].total, view.stages[0].completed, view.stages[0].failed) == (3, 2, 1)


async def test_a_stage_in_which_every_task_failed_fails(platform: StagePlatform) -> None:
    view = await platform.complete("partial", {"widths": [1, 1], "fail_stage": 2})
    assert view.latest.status is StageStatus.FAILED
    assert "every task of stage 2 (stage 2) failed" in (view.latest.error or "")
    assert "-s2-0: this one fails" in (view.latest.error or "")


async def test_a_number_of_failures_is_tolerated_and_no_more_run_at_once(platform: StagePlatform) -> None:
    view = await platform.complete("tolerant", {"widths": [5], "fail_stage": 1, "seconds": 0.02})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    (most,) = await platform.rows("""
        SELECT max(at_once) AS most FROM (
            SELECT (SELECT count(*) FROM dagapp.dag_node_states o WHERE o.item_index >= 0
                    AND o.started_at <= n.started_at AND o.completed_at > n.started_at) AS at_once
            FROM dagapp.dag_node_states n WHERE n.item_index >= 0) AS counted""")
    assert most == {"most": 2}


async def test_what_a_task_hands_over_comes_to_the_task_of_the_same_index(platform: StagePlatform) -> None:
    view = await platform.complete("handing", {"givers": ["a", "b"], "takers": ["b", "a"]})
    assert view.stage_results["stage_2"] == {"a": "from a", "b": "from b"}


@pytest.mark.parametrize(
    ("givers", "takers", "words"),
    [
        (["a"], ["a", "b", "c"], "the tasks 'b', 'c' would get next_stage_params, but stage 1 gave none to that index"),
        (["a", "b"], ["a"], "stage 1 gave next_stage_params to task 'b', which stage 2 lacks"),
        (["a", "b"], ["a", "a"], 'two tasks have the index "a"'),
    ],
)
async def test_a_counterpart_that_is_missing(
    platform: StagePlatform, givers: list[str], takers: list[str], words: str
) -> None:
    view = await platform.complete("handing", {"givers": givers, "takers": takers})
    assert words in (view.latest.error or "")


async def test_results_above_a_megabyte_lie_in_the_store(platform: StagePlatform) -> None:
    view = await platform.complete("large")
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    first, second = (view.result or {})["stage_1"], (view.result or {})["stage_2"]
    assert first.keys() == {"large_metadata_path", "sha256", "size"}
    assert second["value"]["lengths"] == [1_200_000, 0]
    assert second["value"]["whole"] == 1_200_000
    large, small = second["value"]["paths"]
    assert large.startswith("silver/results/")
    assert small is None
    rows = await platform.rows("SELECT max(length(output::text)) AS longest FROM dagapp.dag_task_results")
    assert rows[0]["longest"] < 10_000
    assert len(json.dumps(view.result)) < 10_000


async def test_plain_functions_and_their_names_of_tasks(platform: StagePlatform) -> None:
    view = await platform.complete("plain", {"blob_name": "a.tif", "tiles": 3})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert view.result == {
        "stage_1": {"value": ["tile_0", "tile_1", "tile_2"]},
        "stage_2": {"total": 3, "completed": 3, "failed": 0},
    }
    assert view.latest.run.parameters == {"blob_name": "a.tif", "tiles": 3}


async def test_a_handler_has_the_task_id_that_is_shown(platform: StagePlatform) -> None:
    view = await platform.complete("telling")
    rows = await platform.rows(
        "SELECT t.task_id, t.engine_task_id, t.parameters, r.output FROM app.tasks AS t"
        " JOIN dagapp.dag_task_results AS r ON r.task_id = t.engine_task_id ORDER BY t.task_id"
    )
    assert [row["task_id"] for row in rows] == [f"{view.latest.run.job_id[:8]}-s1-tile_{place}" for place in range(2)]
    for row in rows:
        assert row["parameters"] == {"value": 1}
        assert row["output"] == {
            "task_id": row["task_id"], "attempt_id": row["engine_task_id"], "names": ["value"]
        }  # fmt: skip


async def test_what_is_refused_leaves_nothing_behind(make_stages: Callable[[], StagePlatform]) -> None:
    platform = make_stages()
    with pytest.raises(NotFoundError, match="did you mean 'counting'"):
        await platform.order("countin")
    with pytest.raises(InputsError, match=r"are wrong: seconds: .* \(and 1 more\)") as refused:
        await platform.order("counting", {"width": [1], "seconds": "long"})
    assert {problem.where for problem in refused.value.problems} == {"width", "seconds"}
    with pytest.raises(InputsError, match="blob_name"):
        await platform.order("plain", {})
    with pytest.raises(InputsError, match="must not be empty"):
        await platform.order("plain", {"blob_name": ""})
    assert await platform.rows("SELECT 1 FROM dagapp.dag_stage_jobs") == []
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_two_jobs_whose_ids_begin_alike_do_not_disturb_each_other(platform: StagePlatform) -> None:
    """The engine's own ids have the whole of the run in them."""
    runs = [
        await platform.submit(
            "stages.wide", {"job_id": f"598fc149{end * 56}", "parameters": {"widths": [width, width]}}
        )
        for end, width in (("0", 3), ("1", 5))
    ]
    ended = [await platform.ended(run) for run in runs]
    assert [(job.result_data or {})["stage_1"]["tasks"] for job in ended] == [3, 5]
    async with platform.pool.connection() as conn:
        tasks = [await stage_jobs.tasks(conn, run, "stage1_tasks", after=-1, limit=10) for run in runs]
    assert list(map(len, tasks)) == [3, 5]


async def test_jobs_whose_ids_begin_alike(platform: StagePlatform) -> None:
    """Their tasks have the same names, which are for people, and nothing else in common."""
    first, second = [await platform.order("counting", {"note": f"n{number}"}) for number in ALIKE]
    assert first.run.job_id[:8] == second.run.job_id[:8]
    assert first.run.job_id != second.run.job_id
    for order in (first, second):
        await platform.ended(order.run.run_id)
        view = await platform.view(order.run.job_id)
        assert view.latest.status is StageStatus.COMPLETED, view.latest.error
        assert [stage.completed for stage in view.stages] == [2, 3, 1]
    (row,) = await platform.rows("SELECT count(*), count(DISTINCT task_id) AS ids FROM dagapp.dag_task_results")
    assert row == {"count": 24, "ids": 24}


async def test_what_the_jobs_own_row_tells_stays_when_its_details_are_deleted(platform: StagePlatform) -> None:
    well = await platform.complete("counting", {"widths": [2, 3, 1]})
    badly = await platform.complete("counting", {"widths": [2, 2, 2], "fail_stage": 2, "fail_index": 1})
    pruned = await Retention(platform.pool, options=RetentionOptions(details=timedelta(microseconds=1))).run_once()
    assert pruned.jobs == 2
    view = await platform.view(well.latest.run.job_id)
    assert {stage.status for stage in view.stages} == {StageStatus.COMPLETED}
    assert view.stage_results == view.result == well.result
    view = await platform.view(badly.latest.run.job_id)
    assert [stage.status.value for stage in view.stages] == ["COMPLETED", "FAILED", "QUEUED"]
