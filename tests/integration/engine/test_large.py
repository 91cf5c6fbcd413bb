"""Outputs beyond a megabyte lie in the object store, and templates and handlers read them as they read others."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from geomill.domain.engine.large import LARGE, LargeOutput, large_output
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import UnavailableError
from geomill.sdk.registry import load_handlers
from geomill.storage import Storage, StorageRecipe
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import registry_of

ITEMS = [str(number) * 60_000 for number in range(20)]


@pytest.fixture
async def platform(make_platform: MakePlatform, tmp_path):
    new_platform = make_platform()
    new_platform.storage = Storage(StorageRecipe.in_folder(tmp_path))
    await new_platform.storage.prepare()
    return new_platform


async def row_of(platform, node_id: str) -> dict:
    """Return the row of a node of the latest job."""
    (row, *_) = await platform.rows(
        f"SELECT output FROM dagapp.dag_node_states WHERE node_id = '{node_id}' AND item_index < 0 ORDER BY job_id DESC"
    )
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
    [row] = await platform.rows("SELECT output FROM dagapp.dag_task_results WHERE node_id = 'prepare'")
    assert row["output"] == {"large_output": stored}


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
    put = platform.storage.put_bytes
    monkeypatch.setattr(platform.storage, "put_bytes", lambda name, content: put(name, content + b" "))
    platform.orchestrator()
    platform.worker()
    job = await platform.run("fan_out_test", {"item_list": ITEMS})
    assert job.status.value == "failed"
    assert "was changed after it was stored" in job.error_message


# Items of a fan-out

FAN = """
    workflow_id: {name}
    name: {name}
    nodes:
      START: {{type: start, next: each}}
      each:
        type: fan_out
        source: [3, 200000, 2]
        task: {{handler: numbers, params: {{count: "{{{{ item }}}}"}}}}
        next: gather
      gather: {{type: fan_in, aggregation: {name}, next: after}}
      after: {after}
      END: {{type: end}}
    outputs: {outputs}
    """
PASS_ON = "{type: task, handler: echo, params: {}, next: END}"
KINDS = {
    "collect": ("{type: task, handler: measure_async, params: '{{ nodes.gather.output }}', next: END}", "nodes.after"),
    "count": ("{type: task, handler: measure, params: {}, next: END}", "nodes.after"),
    "sum": (PASS_ON, "nodes.gather"),
    "concat": (
        "{type: task, handler: echo, params: {length: '{{ nodes.gather.output.count }}'}, next: END}",
        "nodes.after",
    ),
}


@pytest.fixture
async def fans(make_platform: MakePlatform, tmp_path):
    new_platform = make_platform()
    new_platform.registry = load_handlers(["tests.integration.engine.large_handlers"])
    texts = [
        FAN.format(name=name, after=after, outputs=f"{{found: '{{{{ {node}.output }}}}'}}")
        for name, (after, node) in KINDS.items()
    ]
    new_platform.workflow_registry = registry_of(new_platform.registry, *texts)
    new_platform.storage = Storage(StorageRecipe.in_folder(tmp_path))
    await new_platform.storage.prepare()
    return new_platform


async def items_of(platform, node_id: str = "each") -> list:
    query = "SELECT output FROM dagapp.dag_task_results WHERE node_id = '{}' ORDER BY item_index"
    return [row["output"] for row in await platform.rows(query.format(node_id))]


async def test_a_large_output_of_an_item_goes_aside_and_handlers_read_it(fans):
    fans.orchestrator()
    fans.worker()
    job = await fans.run("collect")
    assert job.result_data["found"] == {"counts": [3, 200_000, 2]}
    small, large, also_small = await items_of(fans)
    assert (small["number"], also_small["number"]) == (3, 2)
    reference = large_output(large)
    assert reference is not None
    assert reference.size > LARGE
    assert (await row_of(fans, "gather"))["results"] == [small, large, also_small]


async def test_a_handler_of_a_child_process_reads_them_from_its_pages(fans):
    fans.orchestrator()
    fans.worker()
    job = await fans.run("count")
    assert job.result_data["found"] == {"counts": [3, 200_000, 2]}


async def test_what_looks_inside_has_them_read(fans):
    fans.orchestrator()
    fans.worker()
    assert (await fans.run("sum")).result_data["found"] == {"total": 200_005, "count": 3}
    assert (await fans.run("concat")).result_data["found"]["echoed_params"] == {"length": 200_008}
    assert large_output(await row_of(fans, "gather")), "what was gathered is large, too"


async def test_they_wait_for_a_store_that_is_away_and_for_a_next_owner(fans, monkeypatch):
    monkeypatch.setattr("geomill.engine.large.AGAIN_SECONDS", 0.1)
    away = asyncio.Event()
    read = fans.storage.read

    async def flaky(name, *rest):
        if not away.is_set():
            raise UnavailableError("the store is away")
        return await read(name, *rest)

    monkeypatch.setattr(fans.storage, "read", flaky)
    first = fans.orchestrator()
    fans.worker()
    waiting = await fans.submit("sum")
    async with asyncio.timeout(15):
        while True:
            if (await fans.statuses(waiting)).get("gather") == "ready":
                break
            await asyncio.sleep(0.01)
    assert (await fans.run("count")).status.value == "completed", "nobody else waits"
    await fans.crash(first)
    fans.orchestrator(scan_seconds=0.1)
    away.set()
    assert (await fans.ended(waiting)).result_data["found"]["total"] == 200_005


async def test_what_many_small_ones_come_to_goes_aside_and_templates_read_it(platform):
    platform.orchestrator()
    platform.worker()
    items = ["x" * 3_000] * 400
    job = await platform.run("fan_out_test", {"item_list": items})
    assert len(job.result_data["results"]) == 400
    reference = large_output(await row_of(platform, "gather"))
    assert reference is not None
    assert reference.size > LARGE
    gathered = reference.value(await platform.storage.read(reference.name))
    assert [result["echoed_params"]["item_value"] for result in gathered["results"]] == items


async def test_more_than_can_be_gathered_fails_with_the_remedy(platform, monkeypatch):
    monkeypatch.setattr("geomill.engine.aggregation.LARGEST", 100_000)
    platform.orchestrator()
    platform.worker()
    job = await platform.run("fan_out_test", {"item_list": ["x" * 3_000] * 100})
    assert job.status.value == "failed"
    assert "ctx.item_outcomes" in job.error_message


async def test_a_late_answer_to_the_same_attempt_overwrites_nothing():
    first, second = (LargeOutput.of("job", "node", 1, content) for content in (b"mine", b"yours"))
    assert first.path != second.path
