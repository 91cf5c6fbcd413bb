"""Statements that only an administrator of the server can run, once: they create extensions and roles.

There are two ways. A deployment with one role that owns its database needs `preparation`, which returns what is
missing. A deployment with a role for each kind of process begins with `set_up_server` and `set_up_database`: `geomill
db bootstrap` prints them, and the private server runs them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

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
    """The rights of the current role at the level of the server."""

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


def statement(template: LiteralString, **names: str) -> str:
    """Return a statement of `roles.sql` with identifiers, quoted only if they need it: an administrator reads it."""
    return template.format(**{key: identifier(value) for key, value in names.items()})


async def preparation(conn: AsyncConnection[Any]) -> list[str]:
    """Return the statements to run before the current role can migrate the database; none if it does not own it."""
    fitness = await check_fitness(conn)
    extensions = [statement(queries("roles").create_extension, name=name) for name in fitness.missing]
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
        *(statement(queries("roles").create_role, role=role) for role in absent),
        *(statement(queries("roles").set_search_path, role=role) for role in absent),
        *_reads_with_ingest(absent),
        *(statement(queries("roles").grant_membership, role=role, member=me.role) for role in foreign),
    ]


def _reads_with_ingest(absent: list[str]) -> list[str]:
    """Give pgstac's writing role the rights of the reading one."""
    if not {"pgstac_read", "pgstac_ingest"} & set(absent):
        return []
    return [statement(queries("roles").grant_membership, role="pgstac_read", member="pgstac_ingest")]


def set_up_server(owner: str = DatabaseRole.OWNER) -> Iterator[str]:
    """Yield the statements that create the missing roles. They can be run again."""
    for role in PGSTAC_ROLES:
        yield statement(queries("roles").ensure_role, role=role)
        yield statement(queries("roles").set_search_path, role=role)
    yield statement(queries("roles").grant_membership, role="pgstac_read", member="pgstac_ingest")
    yield statement(queries("roles").ensure_login, role=owner)
    for role in LIMITED_ROLES:
        yield statement(queries("roles").ensure_login, role=role)
    for role in (*PGSTAC_ROLES, *LIMITED_ROLES):
        yield statement(queries("roles").grant_membership, role=role, member=owner)
    for role in PGSTAC_WRITERS:
        yield statement(queries("roles").grant_membership, role="pgstac_ingest", member=role)
    for role in SERVING:
        yield statement(queries("roles").grant_membership, role="pgstac_read", member=role)
        yield statement(queries("roles").limit_statements, role=role)
        yield statement(queries("roles").only_read, role=role)


def see_sessions() -> str:
    """Return the statement that lets /metrics count the sessions of other roles. Not every administrator may run it."""
    return statement(queries("roles").grant_if_allowed, role="pg_read_all_stats", member=DatabaseRole.GATEWAY)


def set_up_database(database: str, roles: Sequence[str], owner: str = DatabaseRole.OWNER) -> Iterator[str]:
    """Yield the statements, to run in the database, that give it to the owner and let only `roles` connect."""
    yield statement(queries("roles").own_database, database=database, owner=owner)
    yield statement(queries("roles").close_database, database=database)
    for role in roles:
        yield statement(queries("roles").open_database, database=database, role=role)
    for name in EXTENSIONS:
        yield statement(queries("roles").ensure_extension, name=name)


async def refusal(conn: AsyncConnection[Any], reason: str) -> DatabaseUnfit:
    """Return the error for a role that may not migrate, with the statements for an administrator to run, if any."""
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
