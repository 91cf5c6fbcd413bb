"""TCP settings and passwords of asyncpg sessions. asyncpg has no options to detect a network that silently drops
packets."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from geomill.errors import IdentityUnavailable
from geomill.identity.passwords import password_source
from geomill.store.connection import PROBES, SERVER_NETWORK, SILENCE_SECONDS
from geomill.store.pool import IDLE_IN_TRANSACTION

NETWORK_SETTINGS = {**SERVER_NETWORK, **IDLE_IN_TRANSACTION}
"""Values for `server_settings`: the server's TCP settings, and the timeout of idle transactions."""

_OPTIONS = {
    "TCP_USER_TIMEOUT": SILENCE_SECONDS * 1000,
    "TCP_KEEPIDLE": PROBES["idle"],
    "TCP_KEEPINTVL": PROBES["interval"],
    "TCP_KEEPCNT": PROBES["count"],
}


def token_password(url: str) -> Callable[[], Awaitable[str | None]] | None:
    """Return the `password` of a pool: a function that returns a token, or None if the URL says everything."""
    source = password_source(url)
    if source is None:
        return None

    async def password() -> str | None:
        try:
            return await source()
        except IdentityUnavailable as error:  # served as a database that is away
            raise asyncpg.PostgresConnectionError(str(error)) from None

    return password


def watch_network(conn: asyncpg.Connection[Any]) -> None:
    """Set the client's TCP options of a new session. asyncpg does not expose its socket, hence the private name."""
    transport = conn._transport  # noqa: SLF001
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as own:
        if own.family == socket.AF_UNIX:
            return
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS.items():
            if hasattr(socket, name):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
