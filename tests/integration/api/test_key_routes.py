"""Keys over HTTP: created and shown once, listed, revoked."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from geomill.api.routes.keys import require_own_roles
from geomill.contract.keys import NewKey
from geomill.domain.access.principal import Principal, Role
from geomill.errors import Forbidden
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.desk import problem

KEYS = "/api/v1/keys"


async def test_a_key_is_shown_once_and_works_until_it_is_revoked(
    idle: AsyncClient, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await idle.post(KEYS, json={"roles": ["reader"], "name": "console", "expires_seconds": 3600})
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    created = answer.json()
    assert answer.headers["location"] == f"{KEYS}/{created['key_id']}"
    assert created["expires_at"]
    secret = created.pop("key")
    hidden = secret.rsplit("_", 1)[1]
    assert (await idle.get("/health", headers=bearing(secret))).status_code == 200
    listed = await idle.get(KEYS)
    assert created in [{**key, "last_used_at": None} for key in listed.json()["keys"]]
    assert created["created_by"].startswith("key:")
    assert hidden not in listed.text
    assert "secret_hash" not in listed.text
    revoked = (await idle.delete(f"{KEYS}/{created['key_id']}")).json()
    assert revoked["revoked_at"]
    monkeypatch.setattr("geomill.api.authentication.FRESH_SECONDS", 0.0)
    assert (await idle.get("/health", headers=bearing(secret))).status_code == 401
    assert (await idle.delete(f"{KEYS}/{created['key_id']}")).json()["revoked_at"] == revoked["revoked_at"]
    entries = (await idle.get("/api/v1/audit")).json()["entries"]
    assert [(entry["action"], entry["details"]["name"]) for entry in entries] == [
        ("key_revoked", "console"),
        ("key_created", "console"),
    ]
    assert hidden not in str(entries)


async def test_a_key_is_revoked_by_its_id_alone(idle: AsyncClient, database: str) -> None:
    """A key does not go with another that has its name as id."""
    named = await make_key(database, Role.READER, name="console")
    problem(await idle.delete(f"{KEYS}/console"), 404, "not_found")
    assert (await idle.get(f"{KEYS}/{named.key_id}")).json()["revoked_at"] is None
    problem(await idle.get(f"{KEYS}/nothing"), 404, "not_found")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "roles"),
    ({"roles": []}, "roles"),
    ({"roles": ["king"]}, "roles"),
    ({"roles": ["submitter"]}, "give platform_id"),
    ({"roles": ["submitter"], "platform_id": "nobody"}, "there is no platform 'nobody'"),
    ({"roles": ["reader"], "name": " x"}, "name"),
    ({"roles": ["reader"], "name": "\x00"}, "name"),
    ({"roles": ["reader"], "name": "x" * 65}, "name"),
    ({"roles": ["reader"], "expires_seconds": 10**12}, "expires_seconds"),
    ({"roles": ["reader"], "expires_seconds": -1}, "expires_seconds"),
    ({"roles": ["reader"], "key_id": "mine"}, "the field does not exist"),
]


async def test_a_wrong_key(idle: AsyncClient) -> None:
    before = (await idle.get(KEYS)).json()["keys"]
    for body, words in WRONG:
        answer = await idle.post(KEYS, json=body)
        problem(answer, 422, "invalid_input")
        assert words in answer.text, body
    assert len((await idle.get(KEYS)).json()["keys"]) == len(before)


async def test_a_name_is_taken_once(idle: AsyncClient) -> None:
    assert (await idle.post(KEYS, json={"roles": ["reader"], "name": "twice"})).status_code == 201
    problem(await idle.post(KEYS, json={"roles": ["reader"], "name": "twice"}), 409, "conflict")


async def test_pages_of_keys(idle: AsyncClient) -> None:
    key_ids = [(await idle.post(KEYS, json={"roles": ["reader"]})).json()["key_id"] for _ in range(3)]
    await idle.delete(f"{KEYS}/{key_ids[1]}")
    first = (await idle.get(KEYS, params={"limit": 1})).json()
    second = (await idle.get(KEYS, params={"limit": 1, "cursor": first["next_cursor"]})).json()
    assert [key["key_id"] for key in first["keys"] + second["keys"]] == [key_ids[2], key_ids[0]]
    assert key_ids[1] in (await idle.get(KEYS, params={"revoked": True})).text


def test_nobody_gives_a_role_that_they_lack() -> None:
    operator = Principal(subject="o", roles=frozenset({Role.OPERATOR}))
    with pytest.raises(Forbidden, match="the role admin"):
        require_own_roles(operator, NewKey(roles=[Role.OPERATOR, Role.ADMIN]))
    require_own_roles(operator, NewKey(roles=[Role.OPERATOR]))
