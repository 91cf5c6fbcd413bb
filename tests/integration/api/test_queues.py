"""Queues and dead letters over HTTP: look, send again, discard."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.access.principal import Role
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.desk import problem

LETTERS = "/api/v1/dead-letters"
LEGACY = "legacy"


async def send(pool: Pool, message_id: str, body: Any = None, queue: str = LEGACY, later: int = 0) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body, visible_at)"
            " VALUES (%s, %s, %s, now() + make_interval(secs => %s))",
            (queue, message_id, json.dumps(body or {}), later),
        )


async def bury(pool: Pool, message_id: str, body: Any = None, queue: str = LEGACY, reason: str = "TTLExpired") -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_dead_letters (queue_name, message_id, body, reason, description)"
            " VALUES (%s, %s, %s, %s, 'too late')",
            (queue, message_id, json.dumps(body or {}), reason),
        )


async def test_queues_with_their_messages_and_consumers(make_platform: Any, make_client: Any, pool: Pool) -> None:
    platform = make_platform()
    platform.orchestrator()
    client = await make_client(platform)
    await platform.rows_soon("SELECT FROM dagapp.dag_instances")
    await send(pool, "a")
    await send(pool, "b", later=3600)
    await bury(pool, "c")
    queues = {queue["queue_name"]: queue for queue in (await client.get("/api/v1/queues")).json()["queues"]}
    assert {"dag-jobs", "functionapp-tasks", "container-tasks", LEGACY} <= set(queues)
    assert (queues["dag-jobs"]["consumers"], queues["dag-jobs"]["oldest_seconds"]) == (1, None)
    counts = {name: queues[LEGACY][name] for name in ("waiting", "scheduled", "leased", "dead", "consumers")}
    assert counts == {"waiting": 1, "scheduled": 1, "leased": 0, "dead": 1, "consumers": 0}
    assert queues[LEGACY]["oldest_seconds"] >= 0
    jobs = (await client.get("/api/v1/queues/dag-jobs")).json()
    assert (jobs["instances"], jobs["consumers"]) == (list(platform.running), 1)
    missing = problem(await client.get("/api/v1/queues/dag-job"), 404, "not_found")
    assert "did you mean 'dag-jobs'?" in missing["detail"]


async def test_peeking_takes_nothing_and_leaves_long_bodies_out(idle: AsyncClient, pool: Pool) -> None:
    await send(pool, "later", later=60)
    await send(pool, "long", {"text": "x" * 5000})
    await send(pool, "short", {"job_id": "j"})
    for _ in range(2):
        peeked = (await idle.get(f"/api/v1/queues/{LEGACY}/messages", params={"limit": 2})).json()
        assert [message["message_id"] for message in peeked["messages"]] == ["long", "short"]
        assert peeked["more"] is True
    long, short = peeked["messages"]
    assert (long["body"], long["body_bytes"] > 5000, short["body"]) == (None, True, {"job_id": "j"})
    whole = (await idle.get(f"/api/v1/queues/{LEGACY}/messages/long")).json()
    assert len(whole["body"]["text"]) == 5000
    problem(await idle.get(f"/api/v1/queues/{LEGACY}/messages/none"), 404, "not_found")
    problem(await idle.get("/api/v1/queues/none/messages"), 404, "not_found")
    assert (await idle.get("/api/v1/queues/dag-jobs/messages")).json() == {"messages": [], "more": False}


async def test_dead_letters_by_pages_and_filters(idle: AsyncClient, pool: Pool) -> None:
    for number in range(5):
        await bury(pool, f"m{number}", reason="Odd" if number % 2 else "Even")
    await bury(pool, "elsewhere", queue="dag-jobs")
    seen: list[str] = []
    cursor = None
    while not seen or cursor:
        options = {"queue": LEGACY, "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await idle.get(LETTERS, params=options)).json()
        seen += [letter["message_id"] for letter in page["dead_letters"]]
        await bury(pool, f"new{len(seen)}", queue="dag-jobs")  # moves no page
        cursor = page["next_cursor"]
    assert seen == ["m4", "m3", "m2", "m1", "m0"]
    odd = (await idle.get(LETTERS, params={"reason": "Odd"})).json()["dead_letters"]
    assert [letter["message_id"] for letter in odd] == ["m3", "m1"]
    for wrong in ("W10", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwieCJd"):
        assert problem(await idle.get(LETTERS, params={"cursor": wrong}), 422, "invalid_input")["errors"]
    letter = (await idle.get(f"{LETTERS}/m1")).json()
    assert (letter["queue_name"], letter["reason"], letter["description"]) == (LEGACY, "Odd", "too late")
    problem(await idle.get(f"{LETTERS}/m1", params={"queue": "dag-jobs"}), 404, "not_found")


async def test_redriving_says_what_was_sent_and_what_was_not(idle: AsyncClient, pool: Pool) -> None:
    await bury(pool, "a")
    await bury(pool, "b", queue="dag-jobs")
    await bury(pool, "waits")
    await send(pool, "waits")
    answer = await idle.post(f"{LETTERS}/redrive", json={"message_ids": ["a", "b", "waits", "nothing"]})
    assert answer.json() == {"sent": ["a", "b"], "not_found": ["nothing"], "still_waiting": ["waits"], "more": False}
    assert (await idle.post(f"{LETTERS}/redrive", json={"message_ids": ["a"]})).json()["not_found"] == ["a"]
    await bury(pool, "c")
    everything = (await idle.post(f"{LETTERS}/redrive", json={"queue": LEGACY, "all": True})).json()
    assert everything["sent"] == ["c"]
    entries = (await idle.get("/api/v1/audit", params={"action": "dead_letters_redriven"})).json()["entries"]
    assert [entry["details"]["message_ids"] for entry in entries] == [["c"], ["a", "b"]]


async def test_a_discarded_letter_leaves_who_and_why(idle: AsyncClient, pool: Pool, database: str) -> None:
    await bury(pool, "a", {"job_id": "job-1", "secret": "s"})
    await bury(pool, "b")
    operator = bearing(await make_key(database, Role.OPERATOR, name="nightly"))
    body = {"message_ids": ["a", "nothing"], "reason": "a test message"}
    answer = await idle.post(f"{LETTERS}/discard", json=body, headers=operator)
    assert answer.json() == {"discarded": ["a"], "not_found": ["nothing"], "more": False}
    problem(await idle.get(f"{LETTERS}/a"), 404, "not_found")
    assert (await idle.get(f"{LETTERS}/b")).status_code == 200
    (entry,) = (await idle.get("/api/v1/audit")).json()["entries"]
    assert (entry["action"], entry["target"], entry["actor"]) == ("dead_letter_discarded", "a", "key:nightly")
    assert (entry["reason"], entry["details"]["job_id"]) == ("a test message", "job-1")
    assert "secret" not in entry["details"]


@pytest.mark.parametrize(
    ("action", "body", "words"),
    [
        ("redrive", {}, "either message_ids or"),
        ("redrive", {"all": True}, "needs the queue"),
        ("redrive", {"all": True, "queue": "q", "message_ids": ["a"]}, "either message_ids or"),
        ("redrive", {"message_ids": []}, "message_ids"),
        ("redrive", {"message_ids": ["x"] * 1001}, "message_ids"),
        ("redrive", {"message_ids": ["\x00"]}, "NUL"),
        ("discard", {"message_ids": ["a"]}, "reason"),
        ("discard", {"message_ids": ["a"], "reason": "  "}, "reason"),
        ("discard", {"all": "yes", "queue": "q", "reason": "r"}, "all"),
    ],
)
async def test_a_wrong_selection(idle: AsyncClient, action: str, body: dict[str, Any], words: str) -> None:
    answer = await idle.post(f"{LETTERS}/{action}", json=body)
    problem(answer, 422, "invalid_input")
    assert words in answer.text
