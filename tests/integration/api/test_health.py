"""Liveness, readiness, health and metrics."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from geomill.api.readiness import Readiness
from geomill.cli.examination import Level, examine_database
from geomill.domain.access.api_key import Secret
from geomill.domain.engine.instance import InstanceRole
from geomill.store import instances, metrics
from geomill.store.duties import Duties
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, client_of, eventually, ready
from tests.integration.api.issuer import Issuer
from tests.integration.api.test_jobs import submit, until


async def test_ready_when_there_is_somebody_to_run_jobs(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    client = await make_client(platform)
    answer = await client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["no orchestrator is alive", "no worker is alive"]
    platform.orchestrator()
    worker = platform.worker()
    await eventually(lambda: ready(client))
    await platform.crash(worker)

    async def worker_missed() -> bool:
        return (await client.get("/health/ready")).json()["reasons"] == ["no worker is alive"]

    await eventually(worker_missed)


async def test_not_ready_without_the_schema(make_platform: Any, empty_database: str, issuer: Issuer) -> None:
    """Without the schema there are no keys either. A caller who migrates over HTTP has a token."""
    async with client_of(empty_database, make_platform(), access=issuer.settings()) as client:
        unknown = await client.get("/health", headers=bearing(Secret.new()))
        assert (unknown.status_code, unknown.json()["code"]) == (503, "unavailable")
        client.headers.update(bearing(issuer.token("admin")))
        answer = await client.get("/health/ready")
        assert answer.status_code == 503
        assert "geomill db migrate" in answer.json()["reasons"][0]
        migrated = await client.post("/api/v1/bootstrap/migrate", params={"confirm": "yes"})
        assert migrated.json()["changed"]
        again = await client.post("/api/v1/bootstrap/migrate", params={"confirm": "yes"})
        assert again.json() == {"changed": False, "done": [], "external": None}


async def test_not_ready_when_something_is_lost_later(busy: AsyncClient, database: str, pool: Pool) -> None:
    await eventually(lambda: ready(busy))
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE dagapp.dag_jobs ADD COLUMN of_a_newer_release integer")
    assert await ready(busy)
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE app.platform_requests RENAME COLUMN callback_url TO lost")
    answer = await busy.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == [
        "the database refuses what requests need (SQLSTATE 42703); run 'geomill doctor'"
    ]
    (reason,) = (await busy.get("/health/ready")).json()["reasons"]
    assert "the column callback_url of app.platform_requests is missing; run 'geomill db migrate'" in reason


async def test_the_schema_is_compared_again_after_a_while(pool: Pool) -> None:
    """No other answer would show that a trigger is missing."""
    readiness = Readiness(pool, sound_seconds=0.0)
    assert (await readiness.look()).reasons == ["no orchestrator is alive", "no worker is alive"]
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE dagapp.dag_jobs DISABLE TRIGGER dag_jobs_follow")
    (reason,) = (await readiness.look()).reasons
    assert "the trigger dag_jobs_follow on dagapp.dag_jobs is not as the migration left it" in reason


async def test_the_external_zones_database_is_migrated_along(
    make_platform: Any, make_client: Any, empty_database: str
) -> None:
    client = await make_client(make_platform(), external_url=empty_database)
    migrated = (await client.post("/api/v1/bootstrap/migrate", params={"confirm": "yes"})).json()
    assert (migrated["changed"], migrated["done"]) == (True, [])
    assert "create table external.assets" in migrated["external"]
    again = (await client.post("/api/v1/bootstrap/migrate", params={"confirm": "yes"})).json()
    assert again == {"changed": False, "done": [], "external": []}


async def test_health_shows_processes_queues_and_failing_duties(busy: AsyncClient, pool: Pool) -> None:
    await eventually(lambda: ready(busy))
    health = (await busy.get("/health")).json()
    assert health["status"] == "ok"
    assert {instance["role"]: instance["alive"] for instance in health["instances"]} == {
        "orchestrator": True,
        "worker": True,
    }
    assert all(
        instance["heartbeat_seconds"] < 10 and instance["pid"] and instance["version"]
        for instance in health["instances"]
    )
    orchestrator = next(
        instance["instance_id"] for instance in health["instances"] if instance["role"] == "orchestrator"
    )
    duties = Duties(orchestrator)
    duties.failed("orphans", ValueError("no such table"))
    async with pool.connection() as conn:
        assert await duties.tell(conn)
    health = (await busy.get("/health")).json()
    assert health["status"] == "degraded"
    assert health["reasons"] == [f"orphans of {orchestrator} fails"]
    assert "geomill_duties_failing 1.0" in (await busy.get("/metrics")).text


async def test_duties_are_told_only_when_something_is_new(pool: Pool) -> None:
    duties = Duties("orch-x")
    async with pool.connection() as conn:
        await instances.appear(conn, "orch-x", InstanceRole.ORCHESTRATOR)
        duties.passed("orphans")
        assert not await duties.tell(conn)
        for _ in range(3):
            duties.failed("orphans", ValueError("boom"))
        assert await duties.tell(conn)
        duties.failed("orphans", ValueError("boom"))
        assert not await duties.tell(conn)
        duties.passed("orphans")
        assert await duties.tell(conn)
        (instance,) = await instances.everyone(conn)
    assert instance.duties["orphans"] | {"error": "ValueError: boom", "failing": False} == instance.duties["orphans"]


async def test_metrics_can_be_read_and_are_bounded_in_labels(
    busy: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.api.figures.FRESH_SECONDS", 0.0)
    for _ in range(3):
        accepted = await submit(busy)
        await until(busy, accepted["job_id"], "completed")
    await busy.get("/nowhere/at/all")
    text = (await busy.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    readable = families["geomill_figures_readable"].samples
    assert [sample.labels["figures"] for sample in readable if sample.value != 1] == []
    assert {s.labels["status"]: s.value for s in families["geomill_jobs_recent"].samples} == {"completed": 3.0}
    for name in ("geomill_step_run_seconds", "geomill_step_wait_seconds", "geomill_job_claim_seconds"):
        buckets = [s.value for s in families[name].samples if s.name.endswith("_bucket")]
        assert buckets == sorted(buckets)
        assert next(s.value for s in families[name].samples if s.name.endswith("_count")) == buckets[-1]
    routes = {s.labels["route"] for s in families["geomill_http_requests"].samples if s.name.endswith("_total")}
    assert routes <= {"/api/v1/jobs", "/api/v1/jobs/{job_id}", "other"}


async def test_figures_are_read_once_for_many_that_scrape(idle: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    async def queues(_: Any) -> list[Any]:
        nonlocal looked
        looked += 1
        return []

    monkeypatch.setitem(__import__("geomill.api.figures").api.figures.READERS, "queues", queues)
    await asyncio.gather(*(idle.get("/metrics") for _ in range(10)))
    assert looked == 1


async def test_the_oldest_transaction_is_seen(
    idle: AsyncClient, database: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session outside has left a transaction open. The limit of ten minutes is zero for the test."""
    monkeypatch.setattr(metrics, "OLD_SECONDS", 0.0)
    async with await psycopg.AsyncConnection.connect(database, application_name="forgetful") as outside:
        await outside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await outside.execute("SELECT 1")
        health = (await idle.get("/health")).json()
        assert "forgetful" in health["oldest_transaction"]["name"]
        assert health["oldest_transaction"]["seconds"] > 0
        assert any("forgetful" in reason for reason in health["reasons"])
        findings = {finding.subject: finding for finding in await examine_database(database, tmp_path)}
        assert findings["open transactions"].level is Level.WARN
        assert "forgetful" in findings["open transactions"].message
        figures = (await idle.get("/metrics")).text
        assert float(re.search(r"^geomill_oldest_transaction_seconds (\S+)", figures, re.MULTILINE)[1]) > 0
        await outside.rollback()
    async with pool.connection() as conn:
        assert not [holder for holder in await metrics.horizon(conn) if "forgetful" in holder.name]


async def test_doctor_does_not_say_that_queues_are_served_where_nobody_looks(database: str, tmp_path: Path) -> None:
    assert not [finding for finding in await examine_database(database, tmp_path) if finding.subject == "queues"]
