"""Sets up a server that only geomill uses, as its superuser. Afterwards no process of geomill is a superuser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier, Literal

from geomill.domain.access.database_role import DatabaseRole
from geomill.errors import DatabaseUnreachable
from geomill.sql import queries
from geomill.store.administration import see_sessions, set_up_database, set_up_server
from geomill.store.connection import connect

LOCK_KEY = int.from_bytes(b"set up")
MAINTENANCE = "postgres"
PREFIX = "geomill set-up "


Databases = Mapping[str, Sequence[DatabaseRole]]
"""The roles that may connect, by database."""


async def is_set_up(owner_url: str, databases: Databases) -> bool:
    """Whether the owner can connect and the set-up of this release was done. Then the superuser is not needed."""
    try:
        async with await connect(owner_url) as conn:
            return await _stamp(conn) == _current_stamp(databases)
    except DatabaseUnreachable:
        return False


async def _stamp(conn: AsyncConnection[Any]) -> str | None:
    """Return the stamp of the last set-up: a comment on the owner's role, which all databases of a server share."""
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").stamp, {"owner": DatabaseRole.OWNER.value})
        row = await cursor.fetchone()
        return row[0] if row else None


def _current_stamp(databases: Databases) -> str:
    inside = [text for name, roles in databases.items() for text in set_up_database(name, roles)]
    parts = (*set_up_server(), see_sessions(), *inside, queries("roles").adopt)
    return PREFIX + sha256("\n".join(parts).encode()).hexdigest()


async def set_up(
    superuser_url: Callable[[str], str],
    owner_url: str,
    passwords: Mapping[DatabaseRole, str],
    databases: Databases,
) -> None:
    """Create missing roles and databases, and transfer objects that an earlier release created as superuser.

    `superuser_url` returns the URL of the named database. If several processes run this at once, only the first one
    acts.
    """
    async with await connect(superuser_url(MAINTENANCE)) as admin:
        await admin.execute(queries("roles").set_up_lock, {"key": LOCK_KEY})
        if await is_set_up(owner_url, databases):
            return
        for statement in (*set_up_server(), see_sessions()):
            await admin.execute(statement.encode())
        for role, password in passwords.items():
            await _set_password(admin, role, password)
        for name, roles in databases.items():
            await _ensure_database(admin, name)
            async with await connect(superuser_url(name)) as conn, conn.transaction():
                for statement in set_up_database(name, roles):
                    await conn.execute(statement.encode())
                await conn.execute(queries("roles").adopt.encode())
        stamp = SQL(queries("roles").put_stamp).format(
            owner=Identifier(DatabaseRole.OWNER), stamp=Literal(_current_stamp(databases))
        )
        await admin.execute(stamp)


async def _set_password(conn: AsyncConnection[Any], role: DatabaseRole, password: str) -> None:
    """Send only the password's verifier, so that no log can show the password."""
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    await conn.execute(
        SQL(queries("roles").set_password).format(role=Identifier(role.value), verifier=Literal(verifier))
    )


async def _ensure_database(conn: AsyncConnection[Any], name: str) -> None:
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").database_there, {"name": name})
        row = await cursor.fetchone()
    if row is None or not row[0]:
        await conn.execute(SQL(queries("migration").create_database).format(name=Identifier(name)))
