"""Every error is a problem document, with a code that stays."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.access.api_key import Secret
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing

JOBS = "/api/v1/jobs"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "arguments", "status", "code", "words"),
    [
        ("POST", JOBS, {"json": {"workflow_id": "helo_world"}}, 404, "not_found", "did you mean 'hello_world'?"),
        ("POST", JOBS, {"json": {"workflow_id": "hello_world", "inpts": {}}}, 422, "invalid_input", "'inputs'"),
        ("POST", JOBS, {"json": {"workflow_id": "hello_world", "inputs": {"nam": 1}}}, 422, "invalid_inputs", "'name'"),
        ("POST", JOBS, {"json": {"workflow_id": "hello_world", "inputs": [1]}}, 422, "invalid_input", "dictionary"),
        ("POST", JOBS, {"json": {"workflow_id": "hello_world", "priority": 11}}, 422, "invalid_input", "priority"),
        ("POST", JOBS, {"json": {"workflow_id": "hello_world", "priority": "5"}}, 422, "invalid_input", "priority"),
        ("POST", JOBS, {"json": {"workflow_id": "a\x00"}}, 422, "invalid_input", "NUL"),
        (
            "POST",
            JOBS,
            {"json": {"workflow_id": "hello_world", "callback_url": "ftp://x"}},
            422,
            "invalid_input",
            "url",
        ),
        ("POST", JOBS, {"json": {}}, 422, "invalid_input", "workflow_id"),
        ("POST", JOBS, {"json": []}, 422, "invalid_input", "JSON object"),
        ("POST", JOBS, {"content": b'{"workflow_id": "hello_world"}'}, 422, "invalid_input", "Content-Type"),
        ("POST", JOBS, {"content": b"{", "headers": JSON}, 400, "malformed_request", "not JSON"),
        ("POST", JOBS, {"content": b"\xff\xfe", "headers": JSON}, 400, "malformed_request", "body"),
        ("POST", JOBS, {"content": b"[" * 200_000, "headers": JSON}, 400, "malformed_request", "body"),
        ("POST", JOBS, {"content": b" " * 1_000_001, "headers": JSON}, 413, "too_large", "1000000"),
        ("GET", f"{JOBS}/nothing", {}, 404, "not_found", "there is no job 'nothing'"),
        ("GET", f"{JOBS}/nothing/events", {}, 404, "not_found", "there is no job"),
        ("GET", f"{JOBS}/nothing/stream", {}, 404, "not_found", "there is no job"),
        ("POST", f"{JOBS}/nothing/cancel", {}, 404, "not_found", "there is no job"),
        ("POST", f"{JOBS}/nothing/retry", {}, 404, "not_found", "there is no job"),
        ("GET", f"{JOBS}/a%00b", {}, 422, "invalid_input", "job_id"),
        ("GET", JOBS, {"params": {"limit": 0}}, 422, "invalid_input", "limit"),
        ("GET", JOBS, {"params": {"statuss": "x"}}, 422, "invalid_input", "did you mean 'status'?"),
        ("GET", JOBS, {"params": {"status": "done"}}, 422, "invalid_input", "status"),
        ("GET", JOBS, {"params": {"cursor": "rubbish"}}, 422, "invalid_input", "cursor"),
        ("GET", f"{JOBS}/x/events", {"params": {"after": -1}}, 422, "invalid_input", "after"),
        ("GET", f"{JOBS}/x/events", {"params": {"after": 2**63}}, 422, "invalid_input", "after"),
        ("GET", "/api/v1/workflows/helo_world", {}, 404, "not_found", "did you mean 'hello_world'?"),
        ("GET", "/nowhere", {}, 404, "not_found", "/nowhere"),
        ("DELETE", JOBS, {}, 405, "method_not_allowed", "DELETE"),
        ("POST", "/api/v1/bootstrap/migrate", {}, 422, "invalid_input", "confirm=yes"),
        ("GET", "/health/live", {"headers": {"host": "evil.example"}}, 421, "wrong_host", "127.0.0.1"),
        ("POST", f"{JOBS}/x/cancel", {"headers": {"origin": "https://evil.example"}}, 403, "forbidden", "origin"),
    ],
)
async def test_the_shape_of_an_error(
    idle: AsyncClient, pool: Pool, method: str, path: str, arguments: Any, status: int, code: str, words: str
) -> None:
    answer = await idle.request(method, path, **arguments)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["type"] == f"urn:geomill:problem:{code}"
    assert problem["title"]
    assert problem["instance"]
    assert words in problem["detail"] + str(problem.get("errors"))
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) AS messages FROM dagapp.dag_queue")).fetchone()
    assert row == {"messages": 0}


async def test_every_mistake_is_told_with_its_field(idle: AsyncClient) -> None:
    body = {"workflow_id": "echo_test", "inputs": {"count": -1, "message": 5, "more": 1}}
    problem = (await idle.post(JOBS, json=body)).json()
    assert {error["field"] for error in problem["errors"]} == {"count", "message", "more"}


async def test_a_body_that_grows_while_it_comes_is_cut_off(idle: AsyncClient) -> None:
    async def endless() -> Any:
        for _ in range(50):
            yield b" " * 50_000

    answer = await idle.post(JOBS, content=endless(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_an_unknown_error_tells_nothing_about_our_inside(
    idle: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("geomill.api.routes.submission.submit", broken)
    answer = await idle.post(JOBS, json={"workflow_id": "hello_world"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "hunter2" not in answer.text


@pytest.mark.slow
async def test_a_database_that_is_away_is_503(
    make_platform: Any, make_client: Any, database: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("geomill.api.gateway.PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("geomill.api.readiness.PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("geomill.api.authentication.PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("geomill.api.authentication.FRESH_SECONDS", 0.0)
    client = await make_client(make_platform())
    assert (await client.get("/health")).status_code == 200
    name = database.rsplit("/", 1)[1].split("?")[0]
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        try:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            answers = [await client.get(JOBS) for _ in range(2)]
            ready = await client.get("/health/ready")
            live = await client.get("/health/live")
            figures = await client.get("/metrics")
            stranger = await client.get("/metrics", headers=bearing(Secret.new()))
        finally:
            admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "database_unreachable")}
    assert (ready.status_code, ready.json()["reasons"]) == (503, ["the database does not answer"])
    assert live.status_code == 200
    assert (stranger.status_code, stranger.json()["code"]) == (503, "database_unreachable")
    assert 'geomill_figures_readable{figures="queues"} 0.0' in figures.text


async def test_a_database_that_takes_no_changes_is_503_for_them_and_answers_the_rest(
    idle: Any, database: str, server: str
) -> None:
    """Sessions that began while the database was read-only stay read-only. The pool drops all of them when the first
    one refuses a change."""
    import psycopg

    name = database.rsplit("/", 1)[1].split("?")[0]
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            admin.execute(end_all, (name,))
            refused = [await idle.post(JOBS, json={"workflow_id": "hello_world"}) for _ in range(2)]
            listed = await idle.get(JOBS)
        finally:
            admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {(503, "database_unreachable")}
    assert refused[0].headers["Retry-After"] == "5"
    assert "accepts no changes" in refused[-1].json()["detail"]
    assert listed.status_code == 200
    codes = [(await idle.post(JOBS, json={"workflow_id": "hello_world"})).status_code for _ in range(2)]
    assert codes[-1] == 202
