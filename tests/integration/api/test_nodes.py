"""Nodes of a job and items of its fan-outs over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.engine.workflow import Workflow
from geomill.store import definitions
from geomill.store.pool import Pool
from tests.integration.api.conftest import SLOW, eventually
from tests.integration.api.test_jobs import JOBS, submit, until


async def test_a_node_tells_everything(busy: AsyncClient) -> None:
    accepted = await submit(busy, inputs={"name": "Ada"})
    await until(busy, accepted["job_id"], "completed")
    node = (await busy.get(f"{accepted['status_url']}/nodes/hello")).json()
    assert node["status"] == "completed"
    assert (node["handler"], node["type"], node["index"]) == ("hello_world", "task", None)
    assert node["queue"]
    assert node["task_id"] == f"{accepted['job_id']}:hello:1"
    assert node["worker_id"].startswith("work-")
    assert (node["params"], node["params_source"]) == ({"name": "Ada"}, "computed")
    assert node["output"] == {"message": "Hello, Ada!"}
    assert node["wait_seconds"] >= 0
    assert node["run_seconds"] >= 0
    assert node["lease"] is None
    (attempt,) = node["attempts"]
    assert attempt | {"attempt": 1, "status": "completed", "error": None} == attempt
    job = (await busy.get(accepted["status_url"])).json()
    assert job["owner_heartbeat_at"]
    assert job["nodes"][1] | {"handler": "hello_world", "queue": node["queue"]} == job["nodes"][1]


async def test_a_running_node_has_the_parameters_that_were_sent(make_platform: Any, make_client: Any) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    client = await make_client(platform)
    accepted = await submit(client, "slow", inputs={"seconds": 30})
    url = f"{accepted['status_url']}/nodes/nap"

    async def runs() -> bool:
        answer = await client.get(url)
        return answer.status_code == 200 and answer.json()["status"] == "running"

    await eventually(runs)
    node = (await client.get(url)).json()
    assert (node["params"], node["params_source"]) == ({"duration_seconds": 30}, "message")
    assert node["lease"]["worker_id"] == node["worker_id"]
    assert node["attempts"] == []
    await client.post(f"{accepted['status_url']}/cancel")
    await until(client, accepted["job_id"], "cancelled")


async def test_unknown_nodes_and_items_are_named(busy: AsyncClient, idle: AsyncClient) -> None:
    accepted = await submit(busy, "fan_out_test", inputs={"item_list": [1, 2, 3]})
    await until(busy, accepted["job_id"], "completed")
    nodes = f"{accepted['status_url']}/nodes"
    answer = await busy.get(f"{nodes}/each_itm")
    assert (answer.status_code, "each_item" in answer.json()["detail"]) == (404, True)
    assert (await busy.get(f"{nodes}/each_item/items/3")).status_code == 404
    assert (await busy.get(f"{nodes}/prepare/items")).status_code == 409
    assert (await busy.get(f"{nodes}/each_item/items/{2**31}")).status_code == 422
    assert (await busy.get(f"{JOBS}/nobody/nodes/x")).status_code == 404


async def test_items_of_a_fan_out(busy: AsyncClient) -> None:
    accepted = await submit(busy, "fan_out_test", inputs={"item_list": ["a", "b", "c", "d", "e"]})
    await until(busy, accepted["job_id"], "completed")
    items = f"{accepted['status_url']}/nodes/each_item/items"
    page = (await busy.get(items, params={"limit": 3})).json()
    assert [item["index"] for item in page["items"]] == [0, 1, 2]
    page = (await busy.get(items, params={"limit": 3, "cursor": page["next_cursor"]})).json()
    assert [item["index"] for item in page["items"]] == [3, 4]
    assert page["next_cursor"] is None
    item = (await busy.get(f"{items}/2")).json()
    assert (item["index"], item["status"], item["params_source"]) == (2, "completed", "computed")
    assert item["params"] == {"item_value": "c", "item_index": 2}
    assert item["output"]["echoed_params"] == {"item_value": "c", "item_index": 2}
    assert item["attempts"][0]["worker_id"] == item["worker_id"]
    summary = (await busy.get(f"{items}/summary")).json()
    assert (summary["total"], summary["states"], summary["failed"]) == (5, {"completed": 5}, [])
    assert summary["run_seconds"]["slowest"] >= summary["run_seconds"]["p50"] >= 0
    assert len(summary["slowest"]) == 5


@pytest.fixture
async def half_done(idle: AsyncClient, pool: Pool) -> str:
    """A fan-out of ten, of which eight were sent: 0 to 2 completed, 3 and 5 failed, 4 runs with a row, 6 runs without
    one, 7 waits in its queue."""
    workflow = (await idle.get("/api/v1/workflows/fan_out_test")).json()
    async with pool.connection() as conn:
        await definitions.insert(conn, Workflow.model_validate(workflow["definition"]), "h")
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, started_at, definition_hash, input_params)"
            """ VALUES ('j', 'fan_out_test', 'running', now(), 'h', '{"item_list": []}')"""
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, status, items_total, items_sent, dispatched_at)"
            " VALUES ('j', 'each_item', 'running', 10, 8, now())"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_node_states (job_id, node_id, item_index, status, task_id, attempt, error_message,"
            " dispatched_at, started_at, completed_at)"
            " SELECT 'j', 'each_item', n, s::dagapp.node_status, 'j:each_item[' || n || ']:1', 1,"
            " CASE WHEN s = 'failed' THEN 'broken' END, now(), now() - n * interval '1 second',"
            " CASE WHEN s <> 'running' THEN now() END"
            " FROM (VALUES (0, 'completed'), (1, 'completed'), (2, 'completed'), (3, 'failed'), (4, 'running'),"
            " (5, 'failed')) AS v (n, s)"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_queue"
            " (queue_name, message_id, body, lease_token, leased_by, leased_until, started_at)"
            " SELECT %s, 'j:each_item[' || n || ']:1', jsonb_build_object('item_index', n, 'params', '{}'::jsonb),"
            " CASE WHEN n < 7 THEN n END, CASE WHEN n < 7 THEN 'w' END, CASE WHEN n < 7 THEN now() END, now()"
            " FROM unnest(ARRAY[4, 6, 7]) AS n",
            ["functionapp-tasks"],
        )
    return f"{JOBS}/j/nodes/each_item/items"


STATES = {
    "completed": [0, 1, 2],
    "failed": [3, 5],
    "running": [4, 6],
    "dispatched": [7],
    "pending": [8, 9],
    "ready": [],
}


async def all_items(client: AsyncClient, url: str, **filters: Any) -> list[tuple[int, str]]:
    found, cursor = [], None
    while True:
        page = (await client.get(url, params=filters | ({"cursor": cursor} if cursor else {}))).json()
        found += [(item["index"], item["status"]) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_states_of_items_with_and_without_rows(half_done: str, idle: AsyncClient, limit: int) -> None:
    expected = sorted((index, state) for state, indexes in STATES.items() for index in indexes)
    assert await all_items(idle, half_done, limit=limit) == expected
    for state, indexes in STATES.items():
        assert await all_items(idle, half_done, limit=limit, state=state) == [(index, state) for index in indexes]
    failed = [entry for entry in expected if entry[1] == "failed"]
    rest = [entry for entry in expected if entry[1] != "failed"]
    assert await all_items(idle, half_done, limit=limit, order="failed_first") == failed + rest
    slowest = [index for index, _ in await all_items(idle, half_done, limit=limit, order="slowest")]
    assert slowest == [5, 3, 2, 1, 0]
    only = [index for index, _ in await all_items(idle, half_done, limit=limit, order="slowest", state="failed")]
    assert only == [5, 3]


async def test_the_summary_counts_items_with_and_without_rows(half_done: str, idle: AsyncClient) -> None:
    summary = (await idle.get(f"{half_done}/summary")).json()
    assert summary["states"] == {state: len(indexes) for state, indexes in STATES.items() if indexes}
    assert (summary["total"], summary["sent"]) == (10, 8)
    assert [(bucket["first"], bucket["last"]) for bucket in summary["buckets"]] == [(n, n) for n in range(10)]
    assert [[*bucket["states"]] for bucket in summary["buckets"]] == [
        [state] for n in range(10) for state, indexes in STATES.items() if n in indexes
    ]
    assert [item["index"] for item in summary["failed"]] == [3, 5]
    assert summary["slowest"][0]["index"] == 5
    assert summary["run_seconds"]["p50"] == pytest.approx(2)
    item = (await idle.get(f"{half_done}/6")).json()
    assert (item["status"], item["worker_id"], item["params_source"]) == ("running", "w", "message")
    assert (await idle.get(f"{half_done}/9")).json()["status"] == "pending"


@pytest.mark.parametrize(
    "wrong", [{"state": "done"}, {"order": "size"}, {"cursor": "x"}, {"order": "failed_first", "state": "failed"}]
)
async def test_bad_filters_of_items(half_done: str, idle: AsyncClient, wrong: dict[str, str]) -> None:
    answer = await idle.get(half_done, params=wrong)
    assert answer.status_code == 422
    assert next(iter(wrong)) in answer.text


async def test_lines_of_a_node_are_found_at_once_among_those_of_many_items(
    half_done: str, idle: AsyncClient, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.store.logs.EXAMINED", 4)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_task_logs (job_id, node_id, item_index, attempt, level, message)"
            " SELECT 'j', 'each_item', n, 1, 'INFO', 'of an item' FROM generate_series(0, 9) AS n"
            " UNION ALL SELECT 'j', 'prepare', -1, 1, 'ERROR', 'of a node'"
        )
    page = (await idle.get(f"{JOBS}/j/logs", params={"node_id": "prepare", "limit": 2})).json()
    assert ([line["message"] for line in page["lines"]], page["more"]) == (["of a node"], False)
    page = (await idle.get(f"{JOBS}/j/logs", params={"node_id": "gather", "limit": 2})).json()
    assert (page["lines"], page["more"]) == ([], False)
    page = (await idle.get(f"{JOBS}/j/logs", params={"node_id": "each_item", "limit": 2})).json()
    assert (len(page["lines"]), page["more"]) == (2, True)


async def test_a_job_has_the_arrows_of_its_graph_and_those_that_it_took(busy: AsyncClient) -> None:
    accepted = await submit(busy, "route_by_size", inputs={"size_bytes": 5})
    await until(busy, accepted["job_id"], "completed")
    job = (await busy.get(accepted["status_url"], params={"outputs": False})).json()
    arrows = {node["node_id"]: node["next"] for node in job["nodes"]}
    assert arrows["START"] == [{"to": "check", "branch": None, "taken": True}]
    assert arrows["route"] == [
        {"to": "process_light", "branch": "light", "taken": True},
        {"to": "process_heavy", "branch": "heavy", "taken": False},
    ]
    assert arrows["process_heavy"] == [{"to": "join", "branch": None, "taken": False}]
    assert arrows["END"] == []
