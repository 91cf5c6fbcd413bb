"""Sessions of the console and sign-in links in the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from geomill.domain.access.principal import Principal
from geomill.domain.access.session import ROTATION_GRACE_SECONDS, ConsoleSession, SessionToken
from geomill.domain.jsonvalue import to_json
from geomill.sql import queries
from geomill.store.pool import Connection


async def begin(
    conn: Connection, token: SessionToken, principal: Principal, *, key_id: str | None, seconds: float
) -> ConsoleSession:
    row = await (await conn.execute(queries("sessions").begin, _values(token, principal, key_id, seconds))).fetchone()
    assert row is not None
    return ConsoleSession.from_row(row)


async def create_link(
    conn: Connection, token: SessionToken, principal: Principal, *, key_id: str | None, seconds: float
) -> ConsoleSession:
    """Store a sign-in link: whoever has its token may begin a session as the principal, once."""
    values = _values(token, principal, key_id, seconds)
    row = await (await conn.execute(queries("sessions").create_link, values)).fetchone()
    assert row is not None
    return ConsoleSession.from_row(row)


def _values(token: SessionToken, principal: Principal, key_id: str | None, seconds: float) -> dict[str, Any]:
    return {
        "token_hash": token.hash(),
        "key_id": key_id,
        "subject": principal.subject,
        "roles": to_json(sorted(role.value for role in principal.roles)),
        "platform_id": principal.platform_id,
        "may_name": principal.may_name,
        "seconds": seconds,
    }


async def enter(conn: Connection, link: SessionToken, token: SessionToken, *, seconds: float) -> ConsoleSession | None:
    """Turn a sign-in link into a session. Returns None if the link was used, has expired or never existed."""
    values = {"link_hash": link.hash(), "token_hash": token.hash(), "seconds": seconds}
    row = await (await conn.execute(queries("sessions").enter, values)).fetchone()
    return ConsoleSession.from_row(row) if row else None


async def find_many(conn: Connection, hashes: Collection[str], *, idle_seconds: float) -> dict[str, ConsoleSession]:
    """Return the sessions that are valid now, by the hash of the token that was shown."""
    values = {"hashes": list(hashes), "idle_seconds": idle_seconds, "grace": ROTATION_GRACE_SECONDS}
    rows = await (await conn.execute(queries("sessions").find_many, values)).fetchall()
    return {row.pop("shown_hash"): ConsoleSession.from_row(row) for row in rows}


async def rotate(conn: Connection, old: SessionToken, token: SessionToken) -> ConsoleSession | None:
    """Give a session another token. Returns None if the old one is not its current token."""
    values = {"old_hash": old.hash(), "token_hash": token.hash()}
    row = await (await conn.execute(queries("sessions").rotate, values)).fetchone()
    return ConsoleSession.from_row(row) if row else None


async def end(conn: Connection, token: SessionToken) -> None:
    await conn.execute(queries("sessions").end, {"hash": token.hash()})


async def used(conn: Connection, hashes: Collection[str]) -> None:
    """Note that the sessions were used, once a minute at most."""
    await conn.execute(queries("sessions").used, {"hashes": list(hashes)})
