"""Every session of ours notices a network that drops packets without a word: on both sides."""

from __future__ import annotations

import os
import socket
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from geomill.sdk import DatabaseAccess
from geomill.serve.sessions import NETWORK_SETTINGS, watch_network
from geomill.store.connection import attentive, connect
from geomill.store.pool import Connection, open_pool
from geomill.store.signals import Signals
from geomill.vector.database import session

LIMITS = (10_000, 4, 2, 3)
"""Milliseconds without an answer, seconds of quiet, seconds between probes, probes."""
SERVER_LIMITS = """
    SELECT current_setting('tcp_user_timeout') AS timeout, current_setting('tcp_keepalives_idle') AS idle,
           current_setting('tcp_keepalives_interval') AS pause, current_setting('tcp_keepalives_count') AS probes
"""
AS_SHOWN = ("10000", "4", "2", "3")


@pytest.fixture
def tcp_url(empty_database: str) -> str:
    """The URL of a TCP connection: a socket of the file system loses nothing."""
    return make_conninfo(empty_database, host="127.0.0.1")


def _own_limits(descriptor: int) -> tuple[int, ...]:
    with socket.socket(fileno=os.dup(descriptor)) as own:
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        return tuple(own.getsockopt(socket.IPPROTO_TCP, option) for option in options)


async def _server_limits(conn: Connection) -> tuple[Any, ...]:
    async with conn.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        row = await (await cursor.execute(SERVER_LIMITS)).fetchone()
        assert row is not None
        return tuple(row)


@pytest.mark.parametrize("hot", [False, True])
async def test_sessions_of_pools(tcp_url: str, hot: bool) -> None:
    async with open_pool(tcp_url, size=1, hot=hot) as pool, pool.connection() as conn:
        assert _own_limits(conn.fileno()) == LIMITS
        assert await _server_limits(conn) == AS_SHOWN


async def test_the_session_that_listens(tcp_url: str) -> None:
    limits: list[tuple[Any, ...]] = []

    async def look(conn: Connection) -> None:
        limits.extend([_own_limits(conn.fileno()), await _server_limits(conn)])

    signals = Signals(tcp_url, ["channel"], look)
    await signals.start()
    await signals.stop()
    assert limits == [LIMITS, AS_SHOWN]


async def test_single_connections(tcp_url: str) -> None:
    async with await connect(tcp_url) as conn:
        assert _own_limits(conn.fileno()) == LIMITS


def test_sessions_of_task_processes(tcp_url: str) -> None:
    """The worker gives its task processes a URL with these limits."""
    with session(DatabaseAccess(url=attentive(tcp_url))) as conn:
        assert _own_limits(conn.fileno()) == LIMITS
        row = conn.execute(SERVER_LIMITS).fetchone()
        assert row is not None
        assert tuple(row.values()) == AS_SHOWN


async def test_sessions_of_the_services(tcp_url: str) -> None:
    parts = conninfo_to_dict(tcp_url)
    conn = await asyncpg.connect(
        host="127.0.0.1",
        port=int(parts["port"]),
        user=parts["user"],
        password=parts["password"],
        database=parts["dbname"],
        server_settings=NETWORK_SETTINGS,
    )
    try:
        watch_network(conn)
        assert _own_limits(conn._transport.get_extra_info("socket").fileno()) == LIMITS
        assert tuple(await conn.fetchrow(SERVER_LIMITS)) == AS_SHOWN
    finally:
        await conn.close()


def test_the_url_has_the_last_word() -> None:
    url = attentive("postgresql://db.example.org/geomill?tcp_user_timeout=30000&connect_timeout=3")
    parts = conninfo_to_dict(url)
    assert (parts["tcp_user_timeout"], parts["connect_timeout"]) == ("30000", "3")
    assert parts["keepalives_idle"] == "4"
