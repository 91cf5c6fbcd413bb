"""The views in the words of the earlier system: what they show, and who may read them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from geomill.store.migrate import migrate, plan
from geomill.store.pool import Pool
from tests.integration.stages.conftest import StagePlatform
from tests.integration.stages.conftest import make_stages as make_stages


@pytest.fixture
async def platform(make_stages: Any) -> StagePlatform:
    stage_platform: StagePlatform = make_stages()
    stage_platform.orchestrator()
    stage_platform.worker()
    return stage_platform


async def test_jobs_and_tasks_in_the_words_of_the_documents(platform: StagePlatform) -> None:
    handing = await platform.complete("handing")
    failed = await platform.complete("tiles", {"bad": "tile_x0_y10"})
    plain = await platform.submit("stages.wide", {"parameters": {"widths": [1, 1]}})
    await platform.ended(plain)
    jobs = {row["job_id"]: row for row in await platform.rows("SELECT * FROM app.jobs")}
    done, bad = jobs[handing.latest.run.job_id], jobs[failed.latest.run.job_id]
    assert (done["job_type"], done["status"], done["stage"], done["total_stages"]) == ("handing", "COMPLETED", 2, 2)
    assert done["stage_results"] == done["result_data"] == handing.result
    assert (bad["status"], bad["stage"], bad["parameters"]["bad"]) == ("FAILED", 1, "tile_x0_y10")
    assert (jobs[plain]["job_type"], jobs[plain]["stage"]) == ("stages.wide", None)
    tasks = await platform.rows(
        "SELECT task_id, task_type, status, retry_count, parameters, next_stage_params, error_details FROM app.tasks"
        f" WHERE parent_job_id = '{failed.latest.run.job_id}' AND task_index = 'tile_x0_y10'"
    )
    assert tasks == [
        {
            "task_id": f"{failed.latest.run.job_id[:8]}-s1-tile_x0_y10",
            "task_type": "test.work",
            "status": "FAILED",
            "retry_count": 1,
            "parameters": {"seconds": 0.0, "fail": "no pixels", "retryable": True},
            "next_stage_params": None,
            "error_details": "no pixels",
        }
    ]
    handed = await platform.rows("SELECT next_stage_params FROM app.tasks WHERE stage = 1 AND task_index = 'b'")
    assert handed == [{"next_stage_params": {"value": "from b"}}]


async def test_a_job_that_waits_for_an_orchestrator_is_queued(make_stages: Any) -> None:
    platform: StagePlatform = make_stages()
    plain = await platform.submit("stages.wide", {"parameters": {"widths": [1, 1]}})
    staged = await platform.order("handing")
    rows = await platform.rows("SELECT job_id, job_type, status, parameters, run_id FROM app.jobs ORDER BY created_at")
    assert [(row["job_id"], row["job_type"], row["status"]) for row in rows] == [
        (plain, "stages.wide", "QUEUED"),
        (staged.run.job_id, "handing", "QUEUED"),
    ]
    assert rows[0]["parameters"] == {"parameters": {"widths": [1, 1]}}
    assert rows[1]["parameters"]["takers"] == ["b", "a"]


async def test_the_columns_keep_their_types(pool: Pool) -> None:
    """PostgreSQL replaces a view only if its columns have the same types, so a change would stop a migration."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
            " WHERE attrelid = 'app.jobs'::regclass AND attnum > 0 ORDER BY attnum"
        )
        types = {row["attname"]: row["type"] for row in await cursor.fetchall()}
    name, document = "character varying(64)", "jsonb"
    assert types == {
        "job_id": name, "job_type": name, "status": "text", "stage": "integer", "total_stages": "integer",
        "parameters": document, "stage_results": document, "result_data": document, "error_details": "text",
        "metadata": document, "asset_id": name, "run_id": name,
        "created_at": "timestamp with time zone", "updated_at": "timestamp with time zone",
    }  # fmt: skip


async def test_a_job_is_found_by_an_index(pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("SET LOCAL enable_seqscan = off")
        cursor = await conn.execute("EXPLAIN SELECT status FROM app.jobs WHERE job_id = 'x'")
        text = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
    assert "dag_jobs_pkey" in text
    assert "dag_stage_jobs_pkey" in text


async def test_a_lost_view_and_one_in_the_way_of_a_wider_column_come_back(
    migrated: psycopg.AsyncConnection[Any],
) -> None:
    await migrated.execute("DROP VIEW app.jobs, app.tasks")
    await migrated.execute("ALTER TABLE dagapp.dag_jobs ALTER COLUMN correlation_id TYPE varchar(60)")
    await migrated.execute("CREATE VIEW app.jobs AS SELECT correlation_id FROM dagapp.dag_jobs")
    assert [change.summary for change in (await plan(migrated)).changes] == [
        "drop view app.jobs",
        "change column correlation_id from character varying(60) to character varying(64) of dagapp.dag_jobs",
        "create view app.jobs",
        "create view app.tasks",
    ]
    await migrate(migrated)
    assert (await plan(migrated)).changes == ()
