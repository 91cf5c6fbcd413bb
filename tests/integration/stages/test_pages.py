"""Results of a stage reach its code in pages: of so many rows, of so many characters, whatever the stage has."""

from __future__ import annotations

import psycopg
import pytest

from geomill.domain.engine.stage_job import StageStatus
from geomill.errors import UnavailableError
from geomill.sdk.registry import Registry
from geomill.storage import NO_STORAGE
from geomill.store import nodes
from geomill.store.pool import open_pool
from geomill.worker.children.pool import ChildPool
from geomill.worker.repertoire import Repertoire
from geomill.worker.runner import Runner
from tests.integration.stages.conftest import StagePlatform

TASKS = 25


@pytest.mark.parametrize("job_type", ["paged", "paged_here"])
async def test_a_stage_of_more_tasks_than_a_page(
    platform: StagePlatform, monkeypatch: pytest.MonkeyPatch, job_type: str
) -> None:
    """The job's code runs in a process of its own, and in the worker's."""
    monkeypatch.setattr(nodes, "PAGE_ROWS", 7)
    view = await platform.complete(job_type, {"tasks": TASKS})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    names = [f"t{place}" for place in reversed(range(TASKS))]
    assert view.result == {"stage_1": {"tasks": TASKS}, "stage_2": {"values": names}}


async def test_a_page_ends_where_it_becomes_large(platform: StagePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "PAGE_CHARACTERS", 25_000)
    view = await platform.complete("paged_here", {"tasks": 8, "characters": 10_000})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    sizes = []
    after = -1
    async with platform.pool.connection() as conn:
        while (page := await nodes.outcomes_page(conn, view.latest.run.run_id, "stage1_tasks", after, "")) != "[]":
            sizes.append(page.count("next_stage_params"))
            after += sizes[-1]
    assert sizes == [3, 3, 2]


async def test_messages_and_rows_between_stages_stay_small(platform: StagePlatform) -> None:
    """A fan_in that gathered all results would write them twice and send them twice."""
    await platform.complete("paged_here", {"tasks": 200, "characters": 5_000})
    (row,) = await platform.rows("""
        SELECT max(length(output::text)) FILTER (WHERE node_id LIKE '%_results') AS gathered,
               max(length(output::text)) FILTER (WHERE node_id LIKE '%_aggregate') AS aggregated
        FROM dagapp.dag_node_states WHERE item_index = -1""")
    assert row["gathered"] < 100
    assert row["aggregated"] < 10_000


async def test_a_database_that_is_away_is_a_failure_that_passes(database: str) -> None:
    async with open_pool(database, size=1) as pool:
        nobody = Registry({})
        repertoire, children = Repertoire("worker", nobody, 60.0), ChildPool.of(nobody, **NO_CHILDREN)
        runner = Runner(nobody, repertoire, children, NO_STORAGE, pool)
    with pytest.raises(UnavailableError, match="the outcomes of the tasks of 'work' cannot be read") as refused:
        await runner._page("job", "work", -1, "")
    assert isinstance(refused.value.__cause__, psycopg.Error)


NO_CHILDREN = {"ready": 0, "tasks_per_child": 1, "memory_mb": None, "storage": NO_STORAGE.recipe}
