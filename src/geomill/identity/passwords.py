"""The password of a database URL, if it is a token of a managed identity.

It is asked for at each new session. The server checks it then only: an open session outlives its token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from geomill.domain.database_identity import client_of
from geomill.identity import tokens


def password_of(conninfo: str) -> str | None:
    """Return the token for a URL with the mark, or None for any other. Blocks. Raises `IdentityUnavailable`."""
    client_id = client_of(conninfo)
    return None if client_id is None else tokens.token(tokens.DATABASE, client_id).text


async def password_for(conninfo: str) -> str | None:
    """Does what `password_of` does, without blocking the event loop."""
    if client_of(conninfo) is None:
        return None
    return await asyncio.to_thread(password_of, conninfo)


def password_source(conninfo: str) -> Callable[[], Awaitable[str | None]] | None:
    """Return a function that a pool calls for each new session, or None for a URL without the mark."""
    if client_of(conninfo) is None:
        return None
    return lambda: password_for(conninfo)
