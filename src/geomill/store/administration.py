"""What only an administrator of the server can do, and has to do once: extensions and roles.

Two ways lead there. A deployment with one role that owns its database needs `preparation`, which tells what is missing.
One with a role for each kind of process begins with `set_up_server` and `set_up_database`: `geomill db bootstrap`
prints them, and the private server gets them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from geomill.domain.access.database_role import LIMITED_ROLES, DatabaseRole
from geomill.errors import DatabaseUnfit
from geomill.sql import queries
from geomill.store.fitness import EXTENSIONS, check_fitness
from geomill.store.quoting import identifier

PGSTAC_ROLES = ("pgstac_admin", "pgstac_read", "pgstac_ingest")
PGSTAC_WRITERS = (DatabaseRole.ENGINE, DatabaseRole.GATEWAY)
SERVING = (DatabaseRole.READER, DatabaseRole.EXTERNAL)


@dataclass(frozen=True, slots=True)
class Privileges:
    """What the current role may do at the level of the server."""

    role: str
    superuser: bool
    create_roles: bool
    create_databases: bool
    owns_database: bool


async def privileges(conn: AsyncConnection[Any]) -> Privileges:
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("roles").privileges)
        row = await cursor.fetchone()
        assert row is not None
        return Privileges(**row)


def statement(template_name: str, **names: str) -> str:
    """One of `roles.sql` with identifiers in it, quoted where they need it: an administrator reads it."""
    template: str = getattr(queries("roles"), template_name)
    return template.format(**{key: identifier(value) for key, value in names.items()})


async def preparation(conn: AsyncConnection[Any]) -> list[str]:
    """The statements that are missing before the current role can migrate the database. None if it does not own it."""
    fitness = await check_fitness(conn)
    extensions = [statement("create_extension", name=name) for name in fitness.missing]
    me = await privileges(conn)
    if me.superuser or not me.owns_database:
        return []
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("roles").missing_roles, {"roles": list(PGSTAC_ROLES)})
        rows = await cursor.fetchall()
    absent = [row["role"] for row in rows if row["absent"]]
    foreign = [row["role"] for row in rows if row["foreign"]]
    return [
        *extensions,
        *(statement("create_role", role=role) for role in absent),
        *(statement("set_search_path", role=role) for role in absent),
        *_reads_with_ingest(absent),
        *(statement("grant_membership", role=role, member=me.role) for role in foreign),
    ]


def _reads_with_ingest(absent: list[str]) -> list[str]:
    """pgstac's role that writes has the rights of the one that reads."""
    if not {"pgstac_read", "pgstac_ingest"} & set(absent):
        return []
    return [statement("grant_membership", role="pgstac_read", member="pgstac_ingest")]


def set_up_server(owner: str = DatabaseRole.OWNER) -> Iterator[str]:
    """Makes the roles that are missing. It can be run again."""
    for role in PGSTAC_ROLES:
        yield statement("ensure_role", role=role)
        yield statement("set_search_path", role=role)
    yield statement("grant_membership", role="pgstac_read", member="pgstac_ingest")
    yield statement("ensure_login", role=owner)
    for role in LIMITED_ROLES:
        yield statement("ensure_login", role=role)
    for role in (*PGSTAC_ROLES, *LIMITED_ROLES):
        yield statement("grant_membership", role=role, member=owner)
    for role in PGSTAC_WRITERS:
        yield statement("grant_membership", role="pgstac_ingest", member=role)
    for role in SERVING:
        yield statement("grant_membership", role="pgstac_read", member=role)
        yield statement("limit_statements", role=role)
        yield statement("only_read", role=role)


def see_sessions() -> str:
    """Lets /metrics count the sessions of the other roles too. Not every administrator may grant it."""
    return statement("grant_if_allowed", role="pg_read_all_stats", member=DatabaseRole.GATEWAY)


def set_up_database(database: str, roles: Sequence[str], owner: str = DatabaseRole.OWNER) -> Iterator[str]:
    """Run in the database: it becomes the owner's, and only `roles` can connect to it."""
    yield statement("own_database", database=database, owner=owner)
    yield statement("close_database", database=database)
    for role in roles:
        yield statement("open_database", database=database, role=role)
    for name in EXTENSIONS:
        yield statement("ensure_extension", name=name)


async def refusal(conn: AsyncConnection[Any], reason: str) -> DatabaseUnfit:
    """The error for a role that may not migrate, with what an administrator has to run, if that is what is missing."""
    missing = await preparation(conn)
    role, database = conn.info.user, conn.info.dbname
    if missing:
        script = "".join(f"\n    {text};" for text in missing)
        remedy = (
            f"let an administrator of the server run this in the database '{database}', then migrate again:{script}"
        )
    else:
        remedy = "run `geomill db migrate` as the role that owns the database"
    return DatabaseUnfit(f"the role '{role}' may not migrate '{database}': {reason}", remedy=remedy)
