"""The first set-up of a server that is ours alone, by its superuser. After it, none of our processes is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier, Literal

from geomill.domain.database_role import DatabaseRole
from geomill.errors import DatabaseUnreachable
from geomill.sql import queries
from geomill.store import fingerprint
from geomill.store.administration import see_sessions, set_up_database, set_up_server
from geomill.store.connection import connect

LOCK_KEY = int.from_bytes(b"set up")
MAINTENANCE = "postgres"


async def is_set_up(owner_url: str) -> bool:
    """Whether the owner gets in and finds what this release has migrated: the superuser is not needed then."""
    try:
        async with await connect(owner_url) as conn:
            return await fingerprint.matches(conn)
    except DatabaseUnreachable:
        return False


async def set_up(
    superuser_url: Callable[[str], str],
    passwords: Mapping[DatabaseRole, str],
    databases: Mapping[str, Sequence[DatabaseRole]],
) -> None:
    """Makes roles and databases as far as they are missing, and hands over what an earlier release made as superuser.
    `superuser_url` is of the named database; `databases` says who may connect to which. It can be done again."""
    async with await connect(superuser_url(MAINTENANCE)) as admin:
        await admin.execute(queries("roles").set_up_lock, {"key": LOCK_KEY})
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


async def _set_password(conn: AsyncConnection[Any], role: DatabaseRole, password: str) -> None:
    """Only its verifier is sent, so that no log can show it."""
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
