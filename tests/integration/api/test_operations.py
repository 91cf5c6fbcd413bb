"""Circuits, parked jobs, settings and the operators' audit over HTTP."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from httpx import AsyncClient

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.settings import Settings, gateway_settings
from geomill.store import circuits
from geomill.store.pool import Pool
from tests.integration.api.desk import problem


async def test_an_open_circuit_is_closed_by_hand(idle: AsyncClient, pool: Pool) -> None:
    assert (await idle.get("/api/v1/circuits")).json() == {"circuits": []}
    async with pool.connection() as conn:
        assert await circuits.failed(conn, "echo", CircuitBreaker(failures=2), 2, "offline", "no network")
    (circuit,) = (await idle.get("/api/v1/circuits")).json()["circuits"]
    assert (circuit["handler"], circuit["state"], circuit["failures"]) == ("echo", "open", 2)
    closed = (await idle.post("/api/v1/circuits/echo/close")).json()
    assert (closed["state"], closed["failures"], closed["probe_at"]) == ("closed", 0, None)
    problem(await idle.post("/api/v1/circuits/sleep/close"), 404, "not_found")
    (entry,) = (await idle.get("/api/v1/audit", params={"action": "circuit_closed"})).json()["entries"]
    assert entry["target"] == "echo"


async def test_parked_jobs_by_pages(idle: AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)"
            " VALUES ('h', 'w', 1, '{}')"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, definition_hash, parked_at, parked_reason)"
            " SELECT 'p' || n, 'w', 'h', now() - make_interval(hours => 9 - n), 'refused'"
            " FROM generate_series(1, 5) AS n"
        )
    seen: list[str] = []
    cursor = None
    while not seen or cursor:
        options = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await idle.get("/api/v1/jobs/parked", params=options)).json()
        seen += [job["job_id"] for job in page["jobs"]]
        cursor = page["next_cursor"]
    assert seen == ["p1", "p2", "p3", "p4", "p5"]
    assert page["jobs"][0]["parked_reason"] == "refused"
    problem(await idle.get("/api/v1/jobs/parked", params={"cursor": "x"}), 422, "invalid_input")
    problem(await idle.get("/api/v1/jobs/parked", params={"limit": 0}), 422, "invalid_input")


async def test_the_settings_without_their_secrets(
    make_platform: Any, make_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {
        "GEOMILL_DATABASE_URL": "postgresql://me:pass1@db.example.org/geomill?sslmode=require&password=pass2",
        "GEOMILL_LINK_SECRET": "pass3" * 10,
        "GEOMILL_CALLBACK_SECRET": "pass4" * 10,
        "AZURE_STORAGE_KEY": "pass5",
        "GEOMILL_SUBMIT_BURST": "7",
        "GEOMILL_CORS_ORIGINS": "https://console.example.org",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    client = await make_client(make_platform(), settings=gateway_settings(Settings(environ), gateway_port=9000))
    answer = await client.get("/api/v1/settings")
    assert not [value for value in ("pass1", "pass2", "pass3", "pass4", "pass5") if value in answer.text]
    settings = {setting["name"]: setting for setting in answer.json()["settings"]}
    url = settings["GEOMILL_DATABASE_URL"]
    assert url["value"] == "postgresql://me:…@db.example.org/geomill?sslmode=require&password=…"
    assert (url["is_set"], url["secret"], url["default"]) == (True, True, None)
    burst = settings["GEOMILL_SUBMIT_BURST"]
    assert (burst["value"], burst["default"], burst["is_set"], burst["secret"]) == (7, 1000, True, False)
    assert (settings["GEOMILL_GATEWAY_PORT"]["value"], settings["GEOMILL_GATEWAY_PORT"]["is_set"]) == (9000, True)
    assert (settings["GEOMILL_BODY_LIMIT"]["is_set"], settings["GEOMILL_LINK_SECRET"]["value"]) == (False, "…")
    assert (settings["GEOMILL_METRICS_KEY"]["value"], settings["GEOMILL_METRICS_KEY"]["secret"]) == (None, True)
    assert settings["GEOMILL_BODY_LIMIT"]["description"]
    assert "GEOMILL_CALLBACK_SECRET" not in settings
    assert "GEOMILL_MAX_DELIVERIES" not in settings


async def test_the_audit_is_only_added_to_and_comes_in_pages(idle: AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO app.operator_audit (action, target, actor) SELECT 'key_created', 'k' || n, 'me'"
            " FROM generate_series(1, 3) AS n"
        )
        with pytest.raises(psycopg.Error, match="only added to"):
            await conn.execute("DELETE FROM app.operator_audit")
    first = (await idle.get("/api/v1/audit", params={"limit": 2})).json()
    second = (await idle.get("/api/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [entry["target"] for entry in first["entries"] + second["entries"]] == ["k3", "k2", "k1"]
    problem(await idle.get("/api/v1/audit", params={"action": "theft"}), 422, "invalid_input")
