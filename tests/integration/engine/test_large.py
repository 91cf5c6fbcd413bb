"""Outputs beyond a megabyte lie in the object store; whoever works with them does not notice."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from geomill.domain.large import LARGE, LargeOutput
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import UnavailableError
from geomill.storage import Recipe, Storage
from tests.integration.engine.conftest import MakePlatform

ITEMS = [str(number) * 60_000 for number in range(20)]


@pytest.fixture
async def platform(make_platform: MakePlatform, tmp_path):
    made = make_platform()
    made.storage = Storage(Recipe.in_folder(tmp_path))
    await made.storage.prepare()
    return made


async def row_of(platform, node_id: str) -> dict:
    (row,) = await platform.rows(f"SELECT output FROM dagapp.dag_node_states WHERE node_id = '{node_id}'")
    return row["output"]


async def test_a_large_output_is_a_file_and_templates_read_it(platform):
    platform.orchestrator()
    platform.worker()
    job = await platform.run("fan_out_test", {"item_list": ITEMS})
    assert (job.status.value, job.result_data["count"]) == ("completed", 20)
    stored = (await row_of(platform, "prepare"))["large_output"]
    content = await platform.storage.read(ObjectName(Zone.SILVER, stored["container"], stored["path"]))
    assert len(content) == stored["size"] > LARGE
    assert hashlib.sha256(content).hexdigest() == stored["sha256"]
    assert json.loads(content)["echoed_params"]["item_list"] == ITEMS
    [kept] = await platform.rows("SELECT output FROM dagapp.dag_task_results WHERE node_id = 'prepare'")
    assert kept["output"] == {"large_output": stored}


async def test_a_successor_reads_it_too(platform):
    first = platform.orchestrator()
    job_id = await platform.submit("fan_out_test", {"item_list": ITEMS})
    worker = platform.worker(concurrency=1)
    await platform.until(job_id, lambda job: job is not None)
    async with asyncio.timeout(15):
        while True:
            if await row_of(platform, "prepare"):
                break
            await asyncio.sleep(0.01)
    await platform.crash(worker)
    await platform.crash(first)
    platform.orchestrator(scan_seconds=0.1)
    platform.worker()
    assert (await platform.ended(job_id)).status.value == "completed"


async def test_a_store_that_is_away_delays_its_jobs_and_no_others(platform, monkeypatch):
    monkeypatch.setattr("geomill.engine.large.AGAIN_SECONDS", 0.1)
    away = asyncio.Event()
    read = platform.storage.read

    async def flaky(name, *rest):
        if not away.is_set():
            raise UnavailableError("the store is away")
        return await read(name, *rest)

    monkeypatch.setattr(platform.storage, "read", flaky)
    platform.orchestrator()
    platform.worker()
    waiting = await platform.submit("fan_out_test", {"item_list": ITEMS})
    assert (await platform.run("hello_world")).status.value == "completed"
    assert (await platform.until(waiting, lambda job: job is not None)).status.value == "running"
    away.set()
    assert (await platform.ended(waiting)).status.value == "completed"


async def test_an_output_that_is_not_what_was_stored_fails_its_attempt(platform, monkeypatch):
    monkeypatch.setattr(LargeOutput, "stands_for", lambda *_: False)
    platform.orchestrator()
    platform.worker()
    job = await platform.run("fan_out_test", {"item_list": ITEMS})
    assert job.status.value == "failed"
    assert "not what was stored" in job.error_message
