"""Retention deletes old details even if processes die meanwhile, and keeps what is still needed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from geomill.datasets.intermediates import folder_of
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER
from geomill.domain.objectname import ObjectName, Zone
from geomill.engine import control
from geomill.engine.maintenance.retention import Retention, RetentionOptions
from geomill.errors import ConflictError, UnavailableError
from geomill.storage import Storage, StorageRecipe
from geomill.store import jobs, retention
from geomill.store.duties import Duties
from tests.integration.engine.conftest import make_platform
from tests.integration.engine.platform import EnginePlatform

__all__ = ["make_platform"]

GEOMILL = str(Path(sys.executable).with_name("geomill"))
MONTH = timedelta(days=30)
OPTIONS = RetentionOptions(details=MONTH)
DETAILS = ("dag_node_states", "dag_task_results", "dag_task_logs", "dag_job_events", "dag_checkpoints", "dag_callbacks")
WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
LARGE_ITEMS = [str(number) * 60_000 for number in range(20)]


@pytest.fixture
async def platform(make_platform, tmp_path: Path) -> EnginePlatform:
    new_platform = make_platform()
    new_platform.storage = Storage(StorageRecipe.in_folder(tmp_path))
    await new_platform.storage.prepare()
    return new_platform


@pytest.fixture
def duty(platform: EnginePlatform) -> Retention:
    return Retention(platform.pool, platform.storage, OPTIONS)


async def an_old_job(
    platform: EnginePlatform, workflow: str = "hello_world", inputs: dict[str, Any] | None = None
) -> str:
    """Return the id of a job that completed two months ago."""
    if not platform.running:
        platform.orchestrator()
        platform.worker()
    job = await platform.run(workflow, inputs)
    await age(platform, job.job_id)
    return job.job_id


async def age(platform: EnginePlatform, job_id: str, days: int = 60) -> None:
    await execute(
        platform,
        f"UPDATE dagapp.dag_jobs SET completed_at = now() - interval '{days} days' WHERE job_id = '{job_id}'",
    )


async def execute(platform: EnginePlatform, statement: str) -> None:
    async with platform.pool.connection() as conn:
        await conn.execute(statement)


async def left(platform: EnginePlatform, job_id: str) -> dict[str, int]:
    """Rows of each table that a job has details in."""
    counts = {}
    for table in DETAILS:
        (row,) = await platform.rows(f"SELECT count(*) AS n FROM dagapp.{table} WHERE job_id = '{job_id}'")
        if row["n"]:
            counts[table] = row["n"]
    return counts


async def job_of(platform: EnginePlatform, job_id: str):
    async with platform.pool.connection() as conn:
        return await jobs.get(conn, job_id)


async def objects(platform: EnginePlatform) -> list[str]:
    return [info.name.path async for info in platform.storage.list(Zone.SILVER, "results")]


async def test_details_go_and_the_job_stays(platform, duty):
    old = await an_old_job(platform, "fan_out_test", {"item_list": LARGE_ITEMS})
    young = (await platform.run("hello_world")).job_id
    assert {"dag_node_states", "dag_task_results", "dag_job_events"} <= (await left(platform, old)).keys()
    assert len(await objects(platform)) == 2, "what the first node returned, and what was gathered"
    before = await left(platform, young)
    pruned = await duty.run_once()
    assert (pruned.jobs, pruned.objects, pruned.more) == (1, 2, False)
    assert pruned.rows["results"] == 21
    assert await left(platform, old) == {}
    assert await objects(platform) == []
    assert await left(platform, young) == before
    job = await job_of(platform, old)
    assert job.result_data["count"] == 20
    assert not job.details_left
    assert "its details were deleted on 20" in job.details_gone
    assert (await duty.run_once()).jobs == 0


async def test_intermediates_that_a_job_left_go_too(platform, duty):
    old, young = await an_old_job(platform, "hello_world", {}), (await platform.run("hello_world")).job_id
    for job_id in (old, young):
        name = ObjectName(Zone.SILVER, INTERMEDIATE_CONTAINER, f"{folder_of(job_id)}/tile.tif")
        await platform.storage.put_bytes(name, b"tile")
    assert (await duty.run_once()).objects == 1
    left_over = [info.name.path async for info in platform.storage.list(Zone.SILVER, INTERMEDIATE_CONTAINER)]
    assert left_over == [f"{folder_of(young)}/tile.tif"]


async def test_results_of_earlier_attempts_logs_and_checkpoints_go_too(platform, duty):
    old = await an_old_job(platform, "retry_test", {"fail_times": 1})
    rows = (
        "task_logs (job_id, node_id, attempt, level, message) VALUES ('{}', 'flaky', 1, 'info', 'so far so good')",
        "checkpoints (job_id, node_id, phase, attempt) VALUES ('{}', 'flaky', 'half', 1)",
        "callbacks (job_id, url, payload, status, ended_at) VALUES ('{}', 'https://a.b', '{{}}', 'delivered', now())",
    )
    for row in rows:
        await execute(platform, f"INSERT INTO dagapp.dag_{row}".format(old))
    before = await left(platform, old)
    assert before.keys() == set(DETAILS)
    assert before["dag_task_results"] == 2
    await duty.run_once()
    assert await left(platform, old) == {}


async def test_many_rows_go_in_many_statements(platform):
    old = await an_old_job(platform, "fan_out_test", {"item_list": list(range(25))})
    duty = Retention(platform.pool, platform.storage, RetentionOptions(details=MONTH, rows=4))
    assert (await duty.run_once()).jobs == 1
    assert await left(platform, old) == {}


async def test_what_is_still_to_be_told_is_kept(platform, duty):
    old = await an_old_job(platform)
    await execute(platform, f"UPDATE dagapp.dag_jobs SET callback_url = 'https://a.b' WHERE job_id = '{old}'")
    async with platform.pool.connection() as conn:
        assert await retention.due(conn, MONTH) == 0
    assert (await duty.run_once()).jobs == 0
    await execute(platform, f"UPDATE dagapp.dag_jobs SET called_back_run = run_number WHERE job_id = '{old}'")
    assert (await duty.run_once()).jobs == 1


async def a_cancelled_job(platform: EnginePlatform) -> str:
    """Return the id of a job that could be retried and ended two months ago."""
    platform.orchestrator()
    job_id = await platform.submit("hello_world")
    await platform.until(job_id, lambda job: job is not None)
    async with platform.pool.connection() as conn:
        await control.cancel(conn, "dag-jobs", job_id, "enough")
    await platform.ended(job_id)
    await age(platform, job_id)
    return job_id


async def test_a_retry_that_comes_first_wins(platform, duty):
    old = await a_cancelled_job(platform)
    async with platform.pool.connection() as conn, conn.transaction():
        await jobs.lock(conn, old)
        assert (await duty.run_once()).jobs == 0, "it is passed over, not waited for"
    platform.worker()
    await retry(platform, old)
    assert (await duty.run_once()).jobs == 0
    assert (await platform.ended(old)).status.value == "completed"


async def test_a_retry_that_comes_second_is_refused(platform):
    old = await a_cancelled_job(platform)
    async with platform.pool.connection() as conn:
        async with conn.transaction():
            assert await retention.mark(conn, MONTH, 60, 10) == [old]
            retrying = asyncio.create_task(retry(platform, old))
            await until_somebody_waits(platform)
        with pytest.raises(ConflictError, match="its details were deleted on"):
            await retrying
    assert (await job_of(platform, old)).status.value == "cancelled"


async def retry(platform: EnginePlatform, job_id: str) -> None:
    async with platform.pool.connection() as conn:
        await control.retry(conn, job_id)


async def until_somebody_waits(platform: EnginePlatform) -> None:
    async with asyncio.timeout(10):
        while True:
            if await platform.rows(f"SELECT {WAITING}"):
                return
            await asyncio.sleep(0.01)


async def test_a_store_that_is_away_is_told_and_tried_again(platform, monkeypatch):
    first, second = [await an_old_job(platform) for _ in range(2)]
    await age(platform, first, days=61)
    duties = Duties("orch-1")
    duty = Retention(platform.pool, platform.storage, RetentionOptions(details=MONTH, lease_seconds=0), duties)
    whole = await left(platform, second)

    async def away(*_: object) -> int:
        raise UnavailableError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(platform.storage, "delete_prefix", away)
        assert not await duty._try_once()
    assert "the store is away" in str(duties._troubles["retention"])
    assert (await job_of(platform, first)).details_left
    assert (await job_of(platform, second)).details_deleted_at is None, "given back untouched"
    assert await left(platform, second) == whole
    assert not await duty._try_once()
    assert not duties._troubles["retention"].failing
    assert await left(platform, first) == await left(platform, second) == {}


def command(database: str, tmp_path: Path, *arguments: str) -> Coroutine[Any, Any, Process]:
    """`geomill jobs …`, as a process of its own."""
    settings = {"GEOMILL_DATABASE_URL": database, "GEOMILL_SILVER": str(tmp_path / "silver")}
    others = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
    return asyncio.create_subprocess_exec(GEOMILL, "jobs", *arguments, env=others | settings, stdout=PIPE, stderr=PIPE)


@pytest.mark.slow
async def test_by_hand(platform, database, tmp_path):
    old = await an_old_job(platform)
    begun = [
        await command(database, tmp_path, *arguments)
        for arguments in (
            ("prune", "--dry-run", "--json"),
            ("prune", "--older-than", "9d"),
            ("prune", "--older-than", "9"),
        )
    ]
    (dry, _), (output, _), (_, wrong) = [await process.communicate() for process in begun]
    assert json.loads(dry)["due"] == 0, "the settings say 90 days"
    assert b"deleted the details of 1 jobs" in output
    assert b"write a number and m, h, d or w" in wrong
    shown, _ = await (await command(database, tmp_path, "show", old)).communicate()
    assert b"its details were deleted on" in shown


async def test_who_is_killed_between_objects_and_rows_is_followed_by_another(platform, database, tmp_path):
    old = await an_old_job(platform, "fan_out_test", {"item_list": LARGE_ITEMS})
    async with platform.pool.connection() as conn, conn.transaction():
        await conn.execute("SELECT FROM dagapp.dag_node_states WHERE job_id = %s FOR UPDATE", [old])
        killed = await command(database, tmp_path, "prune", "--older-than", "30d")
        await until_somebody_waits(platform)
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        await execute(platform, f"SELECT pg_terminate_backend(pid) {WAITING}")  # or the server would carry it out
    assert await objects(platform) == []
    assert "dag_node_states" in await left(platform, old)
    assert (await Retention(platform.pool, platform.storage, OPTIONS).run_once()).jobs == 0, "its lease holds"
    later = Retention(platform.pool, platform.storage, RetentionOptions(details=MONTH, lease_seconds=0))
    assert (await later.run_once()).jobs == 1
    assert await left(platform, old) == {}


async def test_two_at_once_share_the_work(platform):
    old = [await an_old_job(platform) for _ in range(6)]
    options = RetentionOptions(details=MONTH, batch=3)
    both = await asyncio.gather(*(Retention(platform.pool, platform.storage, options).run_once() for _ in range(2)))
    assert sum(deletion.jobs for deletion in both) == 6
    assert [await left(platform, job_id) for job_id in old] == [{}] * 6


async def test_old_dead_letters_go_and_young_ones_stay(platform, duty):
    for days in (60, 1):
        await execute(
            platform,
            "INSERT INTO dagapp.dag_dead_letters (queue_name, message_id, body, reason, description, dead_lettered_at) "
            f"VALUES ('dag-jobs', 'm{days}', '{{}}', 'X', 'x', now() - interval '{days} days')",
        )
    assert (await duty.run_once()).dead_letters == 1
    assert [row["message_id"] for row in await platform.rows("SELECT * FROM dagapp.dag_dead_letters")] == ["m1"]


async def test_jobs_that_nothing_refers_to_go_if_wanted(platform):
    old, with_asset = [await an_old_job(platform) for _ in range(2)]
    await execute(platform, f"UPDATE dagapp.dag_jobs SET asset_id = 'a' WHERE job_id = '{with_asset}'")
    options = RetentionOptions(details=MONTH, jobs=MONTH)
    assert (await Retention(platform.pool, platform.storage, options).run_once()).job_rows == 1
    remaining = {row["job_id"] for row in await platform.rows("SELECT job_id FROM dagapp.dag_jobs")}
    assert remaining == {with_asset}
    assert old not in remaining


async def test_a_deleted_job_takes_its_results_with_it(platform):
    old = await an_old_job(platform, "fan_out_test", {"item_list": [1, 2, 3]})
    await execute(platform, f"DELETE FROM dagapp.dag_jobs WHERE job_id = '{old}'")
    assert await left(platform, old) == {}


async def test_the_orchestrator_does_it_by_itself(platform):
    platform.worker()
    platform.orchestrator(retention=RetentionOptions(details=MONTH, look_seconds=0.05))
    job = await platform.run("hello_world")
    await age(platform, job.job_id)
    await platform.until(job.job_id, lambda latest: not latest.details_left)
    assert await left(platform, job.job_id) == {}
