"""Problems that need attention are reported by /health/ready, /health, /metrics and the views of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.engine.maintenance.attendance import AttendanceOptions
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.storage import Storage, StorageRecipe
from tests.integration.api.conftest import eventually

QUICK = AttendanceOptions(look_seconds=0.05)
HEAVY = """
workflow_id: heavy
name: Heavy
nodes:
  START: {type: start, next: say}
  say: {type: task, handler: echo, queue: container-tasks, params: {message: hello}, next: END}
  END: {type: end}
"""


async def reasons(client: AsyncClient, path: str) -> list[str]:
    listed: list[str] = (await client.get(path)).json()["reasons"]
    return listed


async def test_a_queue_that_nobody_serves(make_platform: Any, make_client: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("geomill.api.figures.FRESH_SECONDS", 0.0)
    platform = make_platform(HEAVY)
    client = await make_client(platform)
    platform.orchestrator(attendance=QUICK)
    platform.worker(queues=(LIGHT_QUEUE,))
    accepted = (await client.post("/api/v1/jobs", json={"workflow_id": "heavy"})).json()
    expected = "nobody serves the queue 'container-tasks': what is in it waits"

    async def is_reported() -> bool:
        return await reasons(client, "/health/ready") == [expected]

    await eventually(is_reported)
    ready = await client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")  # everything else runs
    health = (await client.get("/health")).json()
    assert (health["status"], health["reasons"]) == ("degraded", [expected])
    assert {entry["queue_name"]: entry["consumers"] for entry in health["queues"]} == {"container-tasks": 0}
    assert await consumers(client) == {"container-tasks": 0, LIGHT_QUEUE: 1, "dag-jobs": 1}
    waits = ["the step 'say' waits for a worker of the queue 'container-tasks': there is none"]
    job = (await client.get(f"/api/v1/jobs/{accepted['job_id']}")).json()
    assert job["progress"]["waits"] == waits
    assert job["nodes"][-1]["message"] or any(node["message"] for node in job["nodes"])

    platform.worker()

    async def well() -> bool:
        return await reasons(client, "/health") == []

    await eventually(well)
    assert (await consumers(client))["container-tasks"] == 1


async def consumers(client: AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return {sample.labels["queue"]: sample.value for sample in families["geomill_queue_consumers"].samples}


async def test_a_workflow_that_no_orchestrator_knows(make_platform: Any, make_client: Any) -> None:
    knowing, ignorant = make_platform(HEAVY), make_platform()
    client = await make_client(knowing)
    queued = (await client.post("/api/v1/jobs", json={"workflow_id": "heavy"})).json()["job_id"]
    job = (await client.get(f"/api/v1/jobs/{queued}")).json()
    assert (job["status"], job["progress"]["waits"]) == ("queued", ["no orchestrator is alive"])
    ignorant.orchestrator(attendance=QUICK)
    ignorant.worker()
    expected = "no orchestrator knows the workflow 'heavy': its submissions wait"

    async def is_reported() -> bool:
        return await reasons(client, "/health/ready") == [expected]

    await eventually(is_reported)
    job = (await client.get(f"/api/v1/jobs/{queued}")).json()
    assert job["progress"]["waits"] == ["no orchestrator knows the workflow 'heavy'"]


async def test_dead_letters(busy: AsyncClient, pool: Any) -> None:
    async with pool.connection() as conn:
        await queue.send(conn, [Outgoing("dag-jobs", "x", '{"workflow_id": "hello_world", "input_params": 7}')])

    async def is_reported() -> bool:
        return "1 dead letter on dag-jobs: MalformedMessage" in await reasons(busy, "/health")

    await eventually(is_reported)
    async with pool.connection() as conn:
        letter = await (await conn.execute("SELECT description FROM dagapp.dag_dead_letters")).fetchone()
    assert letter == {"description": "input_params: Input should be a valid dictionary"}
    health = (await busy.get("/health")).json()
    assert health["dead_letters"] == [{"queue_name": "dag-jobs", "reason": "MalformedMessage", "letters": 1}]
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_dead_letters SET dead_lettered_at = now() - interval '2 days'")
    health = (await busy.get("/health")).json()
    assert (health["status"], len(health["dead_letters"])) == ("ok", 1)


async def test_a_disk_that_is_nearly_full(make_platform: Any, make_client: Any, tmp_path: Path) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    client = await make_client(platform, storage=storage, space_warning_bytes=10**18)
    await eventually(lambda: _ready(client))
    health = (await client.get("/health")).json()
    assert health["status"] == "degraded"
    places = {disk["place"]: disk for disk in health["space"]}
    assert set(places) == {"data", "bronze", "silver", "external"}
    assert all(0 < disk["free_bytes"] <= disk["total_bytes"] and disk["low"] for disk in places.values())
    assert health["database_bytes"] > 1_000_000
    assert any(reason.startswith("the disk of silver is nearly full: ") for reason in health["reasons"])
    assert str(tmp_path) not in str(health)
    text = (await client.get("/metrics")).text
    assert 'geomill_space_free_bytes{place="silver"}' in text
    assert "geomill_database_bytes " in text
    assert (await client.get("/health/ready")).status_code == 200


async def _ready(client: AsyncClient) -> bool:
    return (await client.get("/health/ready")).status_code == 200
