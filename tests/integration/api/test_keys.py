"""Keys: until when they work, what a look costs, and how often one may be wrong."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
import pytest
from httpx import AsyncClient

from geomill.api.shared_lookup import SharedLookup
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.errors import ConflictError, InputError, NotFoundError
from geomill.settings import AccessSettings
from geomill.store import keys
from geomill.store.pool import Pool, open_pool
from tests.integration.api.conftest import bearing, eventually, make_key


async def health(client: AsyncClient, secret: Secret) -> tuple[int, str]:
    answer = await client.get("/health", headers=bearing(secret))
    return answer.status_code, answer.json().get("detail", "")


async def test_revoked_is_refused_once_it_is_looked_at_again(
    idle: AsyncClient, database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await make_key(database, Role.READER)
    assert (await health(idle, secret))[0] == 200
    async with pool.connection() as conn:
        await keys.revoke(conn, secret.key_id)
    assert (await health(idle, secret))[0] == 200
    monkeypatch.setattr("geomill.api.authentication.FRESH_SECONDS", 0.0)
    assert await health(idle, secret) == (401, "the key has been revoked")


async def test_expired_by_the_clock_of_the_database(idle: AsyncClient, database: str) -> None:
    secret = await make_key(database, Role.READER, expires_seconds=3600)
    assert (await health(idle, secret))[0] == 200
    past = await make_key(database, Role.READER, expires_seconds=-1)
    assert await health(idle, past) == (401, "the key has expired")


async def test_a_known_key_costs_no_look(idle: AsyncClient, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, looks, find = await make_key(database, Role.READER), 0, keys.find_many

    async def counted(conn: Any, key_ids: Any) -> Any:
        nonlocal looks
        looks += 1
        return await find(conn, key_ids)

    monkeypatch.setattr(idle._transport.app.state.authenticator._keys, "_read", counted)
    for _ in range(5):
        assert (await health(idle, secret))[0] == 200
    assert looks == 1


async def test_what_is_remembered_is_bounded(idle: AsyncClient, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.api.authentication.MOST_REMEMBERED", 3)
    secrets = [await make_key(database, Role.READER) for _ in range(6)]
    for secret in secrets:
        assert (await health(idle, secret))[0] == 200
    app: Any = idle._transport.app  # type: ignore[attr-defined]
    remembered = app.state.gateway.authenticator._known
    assert len(remembered) == 3
    assert not any(secret.reveal().encode() in remembered for secret in secrets)


async def test_the_last_use_is_noted_beside_the_requests_and_once_a_minute(
    make_platform: Any, make_client: Any, database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.api.authentication.NOTE_SECONDS", 0.05)
    monkeypatch.setattr("geomill.api.authentication.FRESH_SECONDS", 0.0)
    client = await make_client(make_platform())
    secret = await make_key(database, Role.READER)

    async def used() -> Any:
        async with pool.connection() as conn:
            record = await keys.find(conn, secret.key_id)
        return record and record.key.last_used_at

    assert await used() is None
    await health(client, secret)
    await eventually(used)
    first = await used()
    await health(client, secret)
    await asyncio.sleep(0.2)
    assert await used() == first


async def test_wrong_credentials_from_one_address_are_limited_and_right_ones_go_on(
    idle: AsyncClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await make_key(database, Role.READER)
    assert (await health(idle, secret))[0] == 200
    answers = [await idle.get("/health", headers=bearing(Secret.new())) for _ in range(33)]
    assert [answer.status_code for answer in answers[:30]] == [401] * 30
    last = answers[-1]
    assert (last.status_code, last.json()["code"]) == (429, "too_many_requests")
    assert int(last.headers["retry-after"]) >= 1
    assert (await health(idle, secret))[0] == 200
    never_seen_here = await make_key(database, Role.READER)
    assert (await health(idle, never_seen_here))[0] == 200
    assert (await idle.get("/health", headers=bearing(Secret.new()))).status_code == 429
    monkeypatch.setattr("geomill.api.authentication.FRESH_SECONDS", 0.0)
    assert (await health(idle, secret))[0] == 200


async def test_submissions_of_one_caller_are_limited(make_platform: Any, make_client: Any, database: str) -> None:
    client = await make_client(make_platform(), access=AccessSettings(submit_rate=0.5, submit_burst=3))
    body = {"workflow_id": "hello_world"}
    answers = [await client.post("/api/v1/jobs", json=body) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429]
    assert (answers[3].json()["code"], int(answers[3].headers["retry-after"])) == ("too_many_requests", 2)
    other = await make_key(database, Role.OPERATOR)
    assert (await client.post("/api/v1/jobs", json=body, headers=bearing(other))).status_code == 202
    assert (await client.get("/api/v1/jobs")).status_code == 200


async def test_the_log_names_the_subject_and_never_the_key(
    idle: AsyncClient, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = await make_key(database, Role.OPERATOR, name="nightly")
    await idle.post("/api/v1/jobs", json={"workflow_id": "hello_world"}, headers=bearing(secret))
    await idle.post("/api/v1/bootstrap/migrate", headers=bearing(secret))
    wrong = Secret.new()
    await idle.post("/api/v1/jobs", headers=bearing(wrong))
    lines = [vars(record) for record in caplog.records if record.name.startswith("geomill.")]
    log_lines = [(line["action"], line.get("subject"), line["message"]) for line in lines if "action" in line]
    assert ("request", "key:nightly", "POST /api/v1/jobs") in log_lines
    assert ("refused", "key:nightly", "refused: POST /api/v1/bootstrap/migrate") in log_lines
    assert ("refused", None, "refused: the key does not exist") in log_lines
    everything = caplog.text + str([vars(record) for record in caplog.records])
    for credential in (secret, wrong):
        assert credential.reveal() not in everything
        assert credential.reveal().rsplit("_", 1)[1] not in everything


async def test_the_store_refuses_what_makes_no_sense(pool: Pool) -> None:
    async with pool.connection() as conn:
        with pytest.raises(InputError, match="bound to a platform"):
            await keys.create(conn, Secret.new(), name="a", roles=[Role.SUBMITTER], created_by="me")
        with pytest.raises(InputError, match="needs a role"):
            await keys.create(conn, Secret.new(), name="a", roles=[], created_by="me")
        key = await keys.create(conn, Secret.new(), name="a", roles=[Role.READER, Role.READER], created_by="me")
        assert key.roles == [Role.READER]
        with pytest.raises(ConflictError, match="already a key 'a'"):
            await keys.create(conn, Secret.new(), name="a", roles=[Role.READER], created_by="me")
        assert (await keys.revoke(conn, "a")).revoked_at
        with pytest.raises(NotFoundError, match="no key 'a'"):
            await keys.revoke(conn, "a")
        await keys.create(conn, Secret.new(), name="a", roles=[Role.READER], created_by="me")


@pytest.mark.parametrize("roles", ["[]", '["submitter"]'])
async def test_the_table_refuses_it_too(pool: Pool, roles: str) -> None:
    async with pool.connection() as conn:
        with pytest.raises(psycopg.errors.CheckViolation):
            await conn.execute(
                "INSERT INTO app.api_keys (key_id, secret_hash, name, roles, created_by)"
                " VALUES ('k', 'h', 'n', %s::jsonb, 'me')",
                (roles,),
            )


async def test_a_flood_of_wrong_keys_is_a_few_queries(database: str) -> None:
    right = await make_key(database, Role.READER)
    async with open_pool(database, size=1) as pool:
        lookup = SharedLookup(pool, keys.find_many)
        async with pool.connection():  # nobody else has one, so all of these wait
            flood = [asyncio.create_task(lookup.find(Secret.new().key_id)) for _ in range(400)]
            search = asyncio.create_task(lookup.find(right.key_id))
            gone = asyncio.create_task(lookup.find(Secret.new().key_id))
            await asyncio.sleep(0)
            gone.cancel()
        assert {await lookup_task for lookup_task in flood} == {None}
        key = await search
        assert key is not None
        assert key.key.fits(right)
        assert pool.get_stats()["requests_num"] <= 3
