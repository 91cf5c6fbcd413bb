"""Database sessions whose password is a token of a managed identity. The server knows only the newest token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from geomill.domain.database_identity import with_identity
from geomill.errors import DatabaseUnreachable
from geomill.identity import tokens
from geomill.sdk import DatabaseAccess
from geomill.serve.sessions import token_password
from geomill.store.connection import attentive, connect
from geomill.store.pool import open_pool
from geomill.store.signals import Signals
from geomill.vector.database import session
from tests.identity_endpoint import ALWAYS_STALE, IdentityEndpoint, identity_endpoint


@dataclass
class TokenRole:
    """A role whose password is the token that the endpoint has issued last."""

    name: str
    url: str
    endpoint: IdentityEndpoint
    admin: psycopg.Connection
    last_token: str = ""

    def renew(self, token: str) -> None:
        self.last_token = token
        self.admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(self.name), sql.Literal(token)))

    def end_sessions(self) -> int:
        query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s"
        return len(self.admin.execute(query, [self.name]).fetchall())


@pytest.fixture
def role(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenRole]:
    parts = conninfo_to_dict(empty_database)
    name = f"token_{uuid4().hex[:12]}"
    url = f"postgresql:///{parts['dbname']}?host={parts['host']}&port={parts['port']}&user={name}"
    with identity_endpoint() as endpoint, psycopg.connect(empty_database, autocommit=True) as admin:
        role = TokenRole(name, with_identity(url, "an-identity"), endpoint, admin)
        endpoint.on_issue = role.renew
        for variable, value in endpoint.environ.items():
            monkeypatch.setenv(variable, value)
        tokens._credential.cache_clear()
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN SUPERUSER").format(sql.Identifier(name)))
        try:
            yield role
        finally:
            role.end_sessions()
            admin.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(sql.Identifier(name)))
            admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
            tokens._credential.cache_clear()


async def whoami(url: str) -> str:
    async with await connect(url) as conn:
        row = await (await conn.execute("SELECT current_user")).fetchone()
        assert row
        return str(row[0])


async def test_a_session_opens_with_a_token_which_is_asked_for_once(role: TokenRole) -> None:
    assert [await whoami(role.url), await whoami(role.url)] == [role.name] * 2
    (request,) = role.endpoint.requests
    assert request["resource"] == "https://ossrdbms-aad.database.windows.net"
    assert request["client_id"] == "an-identity"


async def test_a_session_after_the_token_s_end_has_the_next_token(role: TokenRole) -> None:
    role.endpoint.life = ALWAYS_STALE
    assert await whoami(role.url) == role.name
    first = role.last_token
    assert await whoami(role.url) == role.name
    assert len(role.endpoint.requests) == 2
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(role.url, password=first)


async def test_a_pool_replaces_its_sessions_after_the_token_s_end(role: TokenRole) -> None:
    role.endpoint.life = ALWAYS_STALE
    async with open_pool(role.url, size=2, hot=True) as pool:
        for _ in range(3):
            async with pool.connection() as conn:
                row = await (await conn.execute("SELECT current_user AS name")).fetchone()
            assert row == {"name": role.name}
            assert role.end_sessions() >= 1
            await pool.drain()
    assert len(role.endpoint.requests) >= 3


async def test_a_pool_waits_for_an_endpoint_that_is_away(role: TokenRole) -> None:
    role.endpoint.away = True
    asked = asyncio.Event()

    async def come_back() -> None:
        await asyncio.sleep(1)
        role.endpoint.away = False
        asked.set()

    returning = asyncio.create_task(come_back())
    async with open_pool(role.url, size=1) as pool, pool.connection() as conn:
        assert asked.is_set()
        await conn.execute("SELECT 1")
    await returning


async def test_a_command_says_why_there_is_no_token_and_shows_none(role: TokenRole) -> None:
    role.endpoint.away = True
    with pytest.raises(DatabaseUnreachable, match="no token for https://ossrdbms-aad") as caught:
        await whoami(role.url)
    assert "AZURE_CLIENT_ID" in str(caught.value)


async def test_a_token_is_in_no_message(role: TokenRole) -> None:
    role.endpoint.on_issue = lambda token: setattr(role, "last_token", token)  # the server does not know it
    with pytest.raises(DatabaseUnreachable) as caught:
        await whoami(role.url)
    assert role.last_token
    assert role.last_token not in str(caught.value)
    assert role.last_token not in repr(tokens.token(tokens.DATABASE, "an-identity"))


async def test_the_listening_session_comes_back_with_the_next_token(role: TokenRole) -> None:
    role.endpoint.life = ALWAYS_STALE
    connections = asyncio.Queue[int]()

    async def connected(_conn: object) -> None:
        connections.put_nowait(len(role.endpoint.requests))

    signals = Signals(role.url, ["a_channel"], connected)
    await signals.start()
    running = asyncio.create_task(signals.run())
    try:
        async with asyncio.timeout(20):
            first = await connections.get()
            role.end_sessions()
            assert await connections.get() > first
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_a_task_process_opens_its_session_with_a_token(role: TokenRole) -> None:
    role.endpoint.life = ALWAYS_STALE
    for _ in range(2):
        with session(DatabaseAccess(attentive(role.url))) as conn:
            assert conn.execute("SELECT current_user AS name").fetchone() == {"name": role.name}
    assert len(role.endpoint.requests) == 2


async def test_a_serving_pool_opens_each_session_with_the_current_token(role: TokenRole) -> None:
    role.endpoint.life = ALWAYS_STALE
    async with asyncpg.create_pool(role.url, password=token_password(role.url), min_size=0, max_size=2) as pool:
        for number in (1, 2, 3):
            assert await pool.fetchval("SELECT current_user") == role.name
            assert len(role.endpoint.requests) == number
            await pool.expire_connections()


async def test_a_serving_pool_without_a_token_reports_a_database_that_is_away(role: TokenRole) -> None:
    role.endpoint.away = True
    async with asyncpg.create_pool(role.url, password=token_password(role.url), min_size=0, max_size=1) as pool:
        with pytest.raises(asyncpg.PostgresConnectionError, match="no token for"):
            await pool.fetchval("SELECT 1")


def test_without_the_mark_nobody_asks_for_a_token(role: TokenRole, empty_database: str) -> None:
    assert token_password(empty_database) is None
    with session(DatabaseAccess(empty_database)) as conn, closing(conn):
        conn.execute("SELECT 1")
    assert role.endpoint.requests == []


async def test_a_virtual_machine_s_identity_works_too(role: TokenRole, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in role.endpoint.environ:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", role.endpoint.url)
    tokens._credential.cache_clear()
    assert await whoami(role.url) == role.name
    assert os.environ.get("IDENTITY_ENDPOINT") is None
