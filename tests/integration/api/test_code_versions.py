"""Code versions over HTTP: of attempts, of handlers on live workers, and of jobs that ran more than one."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.engine.workflow import Workflow
from geomill.handlers.examples.hello_world import hello_world
from geomill.sdk.code_version import code_version
from geomill.store import definitions
from geomill.store.pool import Pool
from tests.integration.api.test_jobs import JOBS, submit, until

OURS = code_version(hello_world)


async def test_nodes_items_and_attempts_show_it(busy: AsyncClient) -> None:
    accepted = await submit(busy, "fan_out_test", inputs={"item_list": [1, 2, 3]})
    await until(busy, accepted["job_id"], "completed")
    nodes = f"{accepted['status_url']}/nodes"
    node = (await busy.get(f"{nodes}/prepare")).json()
    assert (node["handler_version"], node["attempts"][0]["handler_version"]) == (OURS, OURS)
    page = (await busy.get(f"{nodes}/each_item/items")).json()
    assert [item["handler_version"] for item in page["items"]] == [OURS] * 3
    item = (await busy.get(f"{nodes}/each_item/items/1")).json()
    assert item["handler_version"] == OURS
    assert (await busy.get(f"{nodes}/START")).json()["handler_version"] is None
    assert (await busy.get(accepted["status_url"])).json()["mixed_versions"] == []


async def test_a_handler_shows_the_code_of_each_live_worker(make_platform: Any, make_client: Any, pool: Pool) -> None:
    platform = make_platform()
    workers = [platform.worker(), platform.worker()]
    client = await make_client(platform)
    await platform.rows_soon("SELECT FROM dagapp.dag_instance_handlers HAVING count(*) = 2")
    details = (await client.get("/api/v1/handlers/sleep")).json()
    assert (details["code_versions"], details["code_differs"]) == ([OURS], False)
    assert [instance["code_version"] for instance in details["instances"]] == [OURS, OURS]
    async with pool.connection() as conn:
        await conn.execute(
            """UPDATE dagapp.dag_instance_handlers SET versions = versions || '{"sleep": "0ther"}'"""
            " WHERE instance_id = %s",
            [workers[0].instance_id],
        )
    details = (await client.get("/api/v1/handlers/sleep")).json()
    assert (details["code_versions"], details["code_differs"]) == (sorted(["0ther", OURS]), True)
    shown = {instance["instance_id"]: instance["code_version"] for instance in details["instances"]}
    assert shown == {workers[0].instance_id: "0ther", workers[1].instance_id: OURS}
    listed = {handler["name"]: handler for handler in (await client.get("/api/v1/handlers")).json()["handlers"]}
    assert (listed["sleep"]["code_differs"], listed["hello_world"]["code_differs"]) == (True, False)


async def test_a_worker_of_an_earlier_release_notes_no_versions(
    make_platform: Any, make_client: Any, pool: Pool
) -> None:
    platform = make_platform()
    platform.worker()
    client = await make_client(platform)
    await platform.rows_soon("SELECT FROM dagapp.dag_instance_handlers")
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_instance_handlers SET versions = DEFAULT")
    details = (await client.get("/api/v1/handlers/sleep")).json()
    assert (details["workers"], details["code_versions"], details["code_differs"]) == (1, [], False)
    assert details["instances"][0]["code_version"] is None


@pytest.fixture
async def fanned(idle: AsyncClient, pool: Pool) -> Pool:
    """A completed fan-out of ten, of which two workers ran five items each, all with the same code."""
    workflow = (await idle.get("/api/v1/workflows/fan_out_test")).json()
    async with pool.connection() as conn:
        await definitions.insert(conn, Workflow.model_validate(workflow["definition"]), "h")
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, started_at, completed_at, definition_hash)"
            " VALUES ('j', 'fan_out_test', 'completed', now(), now(), 'h')"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, status, items_total, items_sent, completed_at)"
            " VALUES ('j', 'each_item', 'completed', 10, 10, now())"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index, status, task_id, attempt, worker_id,"
            " started_at, completed_at)"
            " SELECT 'j', 'each_item', n, 'completed', 'j:each_item[' || n || ']:1', 1, 'w' || n / 5, now(), now()"
            " FROM generate_series(0, 9) AS n"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, item_index, attempt, status,"
            " handler_version, reported_at)"
            " SELECT 'j:each_item[' || n || ']:1', 'j', 'each_item', n, 1, 'completed', 'b',"
            " now() + n * interval '1 second' FROM generate_series(0, 9) AS n"
        )
    return pool


async def mixed(client: AsyncClient) -> list[dict[str, Any]]:
    answer = (await client.get(f"{JOBS}/j")).json()["mixed_versions"]
    assert isinstance(answer, list)
    return answer


async def change(pool: Pool, index: int, version: str | None) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE dagapp.dag_task_results SET handler_version = %s WHERE item_index = %s", [version, index]
        )


async def test_one_version_is_not_mixed(fanned: Pool, idle: AsyncClient) -> None:
    assert await mixed(idle) == []
    await change(fanned, 4, None)  # an attempt from before the upgrade
    assert await mixed(idle) == []


@pytest.mark.parametrize("index", [0, 4, 5, 9])
async def test_the_first_and_last_item_of_each_worker_are_compared(fanned: Pool, idle: AsyncClient, index: int) -> None:
    await change(fanned, index, "a")
    order = ["a", "b"] if index == 0 else ["b", "a"]
    assert await mixed(idle) == [{"handler": "echo", "versions": order}]


async def test_all_attempts_at_an_item_are_compared(fanned: Pool, idle: AsyncClient) -> None:
    async with fanned.connection() as conn:
        await conn.execute(
            "UPDATE dagapp.dag_node_states SET attempt = 2, task_id = 'j:each_item[7]:2' WHERE item_index = 7"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_task_results (task_id, job_id, node_id, item_index, attempt, status,"
            " handler_version, reported_at)"
            " VALUES ('j:each_item[7]:2', 'j', 'each_item', 7, 2, 'completed', 'b', now() + interval '1 minute')"
        )
    await change(fanned, 3, "c")  # neither the first nor the last of its worker, and not tried again
    assert await mixed(idle) == []
    async with fanned.connection() as conn:
        await conn.execute(
            "UPDATE dagapp.dag_task_results SET handler_version = 'd' WHERE task_id = 'j:each_item[7]:2'"
        )
    assert await mixed(idle) == [{"handler": "echo", "versions": ["b", "d"]}]


async def test_nodes_with_the_same_handler_are_compared(busy: AsyncClient, pool: Pool) -> None:
    accepted = await submit(busy, "fan_out_test", inputs={"item_list": [1, 2]})
    await until(busy, accepted["job_id"], "completed")
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_task_results SET handler_version = 'other' WHERE node_id = 'prepare'")
    node = (await busy.get(f"{accepted['status_url']}/nodes/prepare")).json()
    assert node["handler_version"] == "other"
    (both,) = (await busy.get(accepted["status_url"])).json()["mixed_versions"]
    assert (both["handler"], both["versions"]) == (node["handler"], ["other", OURS])
