"""Processes and handlers over HTTP."""

from __future__ import annotations

from typing import Any

from httpx import AsyncClient

from geomill import __version__
from geomill.store.pool import Pool
from tests.integration.api.conftest import eventually
from tests.integration.api.desk import problem
from tests.integration.api.test_jobs import submit, until


async def test_each_process_shows_its_share_of_the_work(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    orchestrator = platform.orchestrator(beat_seconds=0.2, scan_seconds=0.1)
    worker = platform.worker(beat_seconds=0.2, concurrency=7)
    client = await make_client(platform)
    for _ in range(3):
        accepted = await submit(client)
        await until(client, accepted["job_id"], "completed")

    async def processes() -> dict[str, Any]:
        listed = (await client.get("/api/v1/instances")).json()["instances"]
        return {instance["instance_id"]: instance for instance in listed}

    async def counted() -> bool:
        shown = await processes()
        engine, work = shown[orchestrator.instance_id]["counts"], shown[worker.instance_id]["counts"]
        return bool(engine["results"] >= 3 and work["completed"] >= 3)

    await eventually(counted)
    shown = await processes()
    engine, work = shown[orchestrator.instance_id], shown[worker.instance_id]
    assert (engine["role"], engine["slots"], engine["queues"]) == ("orchestrator", None, ["dag-jobs"])
    assert (engine["counts"]["claimed"], engine["counts"]["errors"]) == (3, 0)
    assert engine["counts"]["dispatched"] == work["counts"]["leased"] == work["counts"]["completed"]
    assert (work["role"], work["slots"], work["version"], work["alive"]) == ("worker", 7, __version__, True)
    assert (work["counts"]["failed"], work["counts"]["retried"]) == (0, 0)
    assert engine["looked_at"]
    assert work["looked_at"]
    assert work["leased_tasks"] == engine["owned_jobs"] == 0


async def test_a_handler_with_its_schemas_and_its_workers(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    worker = platform.worker()
    client = await make_client(platform)
    await platform.rows_soon("SELECT FROM dagapp.dag_instance_handlers")
    handlers = {handler["name"]: handler for handler in (await client.get("/api/v1/handlers")).json()["handlers"]}
    assert (handlers["sleep"]["workers"], handlers["sleep"]["versions"]) == (1, [__version__])
    details = (await client.get("/api/v1/handlers/sleep")).json()
    assert "duration_seconds" in details["params_schema"]["properties"]
    assert [instance["instance_id"] for instance in details["instances"]] == [worker.instance_id]
    former = (await client.get("/api/v1/handlers/raster.stac_register_item")).json()
    assert former["name"] == "raster.stac_build_item"
    assert "raster.stac_register_item" not in handlers
    missing = problem(await client.get("/api/v1/handlers/sleeep"), 404, "not_found")
    assert "did you mean 'sleep'?" in missing["detail"]


async def test_a_handler_that_only_workers_know(idle: AsyncClient, make_platform: Any, pool: Pool) -> None:
    platform = make_platform()
    platform.worker()
    await platform.rows_soon("SELECT FROM dagapp.dag_instance_handlers")
    async with pool.connection() as conn:
        await conn.execute("""UPDATE dagapp.dag_instance_handlers SET handlers = '["acme.new"]'""")
    handlers = {handler["name"]: handler for handler in (await idle.get("/api/v1/handlers")).json()["handlers"]}
    assert (handlers["acme.new"]["workers"], handlers["acme.new"]["queue"]) == (1, None)
    assert handlers["sleep"]["workers"] == 0
    assert (await idle.get("/api/v1/handlers/acme.new")).json()["params_schema"] is None
