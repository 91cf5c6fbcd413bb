"""Read-only sessions. Otherwise pgstac would store each search and its counts in tables, and answer counts from there a
day later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
from fastapi import FastAPI, Request
from stac_fastapi.pgstac.db import con_init, get_connection

from geomill.domain.access.visibility import PUBLIC_ONLY, Sight
from geomill.serve.sessions import NETWORK_SETTINGS, token_password, watch_network

EVERYTHING = Sight(everything=True)
SESSION = {
    "search_path": "pgstac,public",
    "application_name": "geomill stac",
    "default_transaction_read_only": "on",
    "pgstac.readonly": "true",
    "statement_timeout": "30000",
    "jit": "off",
    **NETWORK_SETTINGS,
}


def lifespan(database_url: str, connections: int) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan of the connection pool, which connects on first use."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(
            database_url,
            password=token_password(database_url),
            min_size=0,
            max_size=connections,
            init=_begin,
            reset=_keep,
            server_settings=SESSION,
        ) as pool:
            app.state.readpool, app.state.get_connection = pool, get_connection
            yield

    return running


async def _begin(conn: asyncpg.Connection[Any]) -> None:
    watch_network(conn)
    await con_init(conn)


async def _keep(_conn: Any) -> None:
    """Reset nothing between uses. No query changes a session, and a reset would cost a round trip."""


def sight_of(request: Request) -> Sight:
    if request.app.state.zone == "external":
        return EVERYTHING  # that zone holds only public data
    sight = getattr(request.state, "sight", None)
    return sight if isinstance(sight, Sight) else PUBLIC_ONLY


async def fetch_value(request: Request, statement: str, *arguments: Any) -> Any:
    async with request.app.state.get_connection(request, "r") as conn:
        return await conn.fetchval(statement, *arguments)
