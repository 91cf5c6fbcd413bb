"""One bounded pool per process. A process needs two or three connections, never one per task."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from geomill.errors import DatabaseUnreachable
from geomill.remedies import CHECK_DATABASE
from geomill.store.connection import SERVER_NETWORK, attentive
from geomill.store.eager import EagerConnection
from geomill.store.session import Lifeline, Session

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

START_SECONDS = 15.0
PATIENCE_SECONDS = 10.0
"""How long a caller waits for a free session."""

CONNECTION: dict[str, Any] = {"autocommit": True, "row_factory": dict_row}

LOCK_MILLISECONDS = 500
"""How long a session of the engine waits for a row that somebody else has locked. Then it goes on without the row."""

HOT = (
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET enable_sort = off",
    "SET jit = off",
    "SET idle_in_transaction_session_timeout = '15s'",
    f"SET lock_timeout = {LOCK_MILLISECONDS}",
)
"""For sessions of the engine and the workers. Their statements are few, known, and reach every row by an index: they
are planned once, when the tables may still be empty, and that plan must be right when they are full. A process that
freezes in the middle of a transaction loses it, and the rows that it locked are free again."""


IDLE_IN_TRANSACTION = {"idle_in_transaction_session_timeout": "60000"}
SESSION_SETTINGS = {"default_toast_compression": "lz4", **IDLE_IN_TRANSACTION, **SERVER_NETWORK}
"""For every session. A value that is too long for a row, such as a list of ten thousand inputs, is compressed:
PostgreSQL's own method takes 13 ms for it, lz4 less than one. A transaction in which nothing has happened for a minute
was forgotten. It is ended, because it keeps its rows locked and all dead rows from being vacuumed."""
SET_IF_SUPPORTED = """
    SELECT set_config(known.name, wanted.value, false)
    FROM pg_settings AS known
    JOIN unnest(%s::text[], %s::text[]) AS wanted (name, value) ON wanted.name = known.name
    WHERE known.enumvals IS NULL OR wanted.value = ANY (known.enumvals)
"""
"""Sets what the server supports: it may be too old for a setting, or built without a value."""


async def make_ready(conn: Connection) -> None:
    await conn.execute(SET_IF_SUPPORTED, (list(SESSION_SETTINGS), list(SESSION_SETTINGS.values())), prepare=False)


async def _make_hot(conn: Connection) -> None:
    await make_ready(conn)
    for setting in HOT:
        await conn.execute(setting)


async def _require_current(conn: Connection) -> None:
    assert isinstance(conn, Session)
    await conn.require_current()


async def _check(conn: Connection) -> None:
    """Check a session only if its socket is readable, as it is when the server has ended it. A check of every session
    would cost a round trip at each use, and a session can end right after the check anyway."""
    await _require_current(conn)
    poller = select.poll()
    poller.register(conn.pgconn.socket, select.POLLIN)
    if poller.poll(0):
        await AsyncConnectionPool.check_connection(conn)


@asynccontextmanager
async def open_pool(
    url: str, *, size: int = 4, name: str = "geomill", hot: bool = False, idle: bool = False
) -> AsyncIterator[Pool]:
    """Open the pool of a process. `hot` is for the engine and the workers only, which recover when a session is gone;
    others get a session that was just checked. An `idle` pool connects at its first use."""
    lifeline = Lifeline()
    pool: Pool = AsyncConnectionPool(
        attentive(url),
        connection_class=EagerConnection if hot else Session,
        kwargs={
            **CONNECTION,
            "application_name": name,
            "prepare_threshold": 0 if hot else 5,
            "lifeline": lifeline,
        },
        configure=_make_hot if hot else make_ready,
        check=_require_current if hot else _check,
        min_size=0 if idle else 1,
        max_size=size,
        open=False,
        name=name,
        timeout=PATIENCE_SECONDS,
    )
    lifeline.of(pool)
    try:
        await _open(pool)
        yield pool
    finally:
        lifeline.closing.set()
        await pool.close()


async def _open(pool: Pool) -> None:
    try:
        await pool.open(wait=True, timeout=START_SECONDS)
    except PoolTimeout as error:
        raise DatabaseUnreachable(
            f"the database gave no connection within {START_SECONDS:g} s", remedy=CHECK_DATABASE.shell
        ) from error


async def transaction_time(conn: Connection) -> datetime:
    """Return the database's time, which all processes use."""
    row = await (await conn.execute("SELECT now() AS now")).fetchone()
    assert row is not None
    now: datetime = row["now"]
    return now
