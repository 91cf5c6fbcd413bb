"""Which role may do what with which table: the one place that says so. `migrate` applies it to the roles that exist.

Where there is only one role, which owns everything, nothing is granted and nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.domain.access.api_key import ApiKey
from geomill.domain.access.database_role import LIMITED_ROLES, DatabaseRole
from geomill.domain.access.operator_audit import OperatorAuditEntry
from geomill.domain.access.session import ConsoleSession
from geomill.domain.assets.asset import EXECUTION_FIELDS, Asset
from geomill.domain.assets.audit import AuditEntry
from geomill.domain.assets.catalogue import CatalogueCollection, CataloguePending
from geomill.domain.assets.extract import Extract
from geomill.domain.assets.leftover import AssetLeftover
from geomill.domain.assets.request import PlatformRequest
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.assets.style import AssetStyle
from geomill.domain.assets.upload import Upload, UploadPart
from geomill.domain.engine.job import Job
from geomill.domain.engine.stage_job import StageRun
from geomill.domain.entity import Entity
from geomill.domain.schema_object import SchemaObject
from geomill.domain.schema_step import SchemaStep
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.sql import queries
from geomill.store.describe import table_name, view_names
from geomill.store.quoting import column_list

Models = Sequence[type[Entity]]

ENGINE, GATEWAY = DatabaseRole.ENGINE, DatabaseRole.GATEWAY
READER, LOADER, EXTERNAL = DatabaseRole.READER, DatabaseRole.LOADER, DatabaseRole.EXTERNAL

READ = ("SELECT",)
WRITE = ("SELECT", "INSERT", "UPDATE", "DELETE")
FEATURES, STAGING = "geo", "geo_staging"
EXTRACT_WORK = ("extract_id", "job_id", "file_name", "media_type", "work", "most_bytes", "removing")
"""The columns of its own extract that a job reads."""


@dataclass(frozen=True, slots=True)
class Right:
    """`columns` are those that may be updated, beside `privileges` on the whole table."""

    privileges: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    read_columns: tuple[str, ...] = ()


def right(role: DatabaseRole, model: type[Entity], *, external: bool) -> Right:
    """Return what the role may do with the model's table."""
    if external:
        return {ENGINE: Right(WRITE), EXTERNAL: Right(READ)}.get(role, Right())
    return _INSIDE.get((role, model)) or _BY_SCHEMA.get((role, model.__sql_schema__)) or Right()


_BY_SCHEMA = {
    (ENGINE, "dagapp"): Right(WRITE),
    (ENGINE, "app"): Right(READ),
    (ENGINE, "catalogue"): Right(WRITE),
    (GATEWAY, "dagapp"): Right(WRITE),
    (GATEWAY, "app"): Right(WRITE),
    (GATEWAY, "catalogue"): Right(WRITE),
}
"""The rights on tables that are not named below."""

_INSIDE = {
    (ENGINE, Asset): Right(READ, (*EXECUTION_FIELDS, "updated_at")),
    (ENGINE, PlatformRequest): Right(READ, ("status", "last_error", "updated_at")),
    (ENGINE, ApiKey): Right(),
    (ENGINE, ConsoleSession): Right(),
    (ENGINE, AuditEntry): Right(),
    (ENGINE, OperatorAuditEntry): Right(),
    (READER, Asset): Right(READ),
    (READER, AssetRevision): Right(READ),
    (READER, AssetLeftover): Right(READ),
    (READER, AssetStyle): Right(READ),
    (ENGINE, AssetLeftover): Right(WRITE),
    (ENGINE, Extract): Right(WRITE),
    (ENGINE, Upload): Right(WRITE),
    (ENGINE, UploadPart): Right(WRITE),
    (READER, ApiKey): Right(READ, ("last_used_at",)),
    (ENGINE, SchemaObject): Right(READ),
    (ENGINE, SchemaStep): Right(READ),
    (GATEWAY, SchemaObject): Right(READ),
    (GATEWAY, SchemaStep): Right(READ),
    (READER, SchemaObject): Right(READ),
    (READER, SchemaStep): Right(READ),
    (READER, CatalogueCollection): Right(READ),
    (READER, CataloguePending): Right(READ),
    (READER, Job): Right(read_columns=("job_id", "status", "result_data", "asset_id")),
    (READER, StageRun): Right(READ),
    (LOADER, Job): Right(read_columns=("job_id", "completed_at")),
    (LOADER, Extract): Right(read_columns=EXTRACT_WORK),
}


VIEWS = {"app.jobs": (ENGINE, GATEWAY), "app.tasks": (ENGINE, GATEWAY)}
"""Views, with the roles that may read them. A view shows rows of all platforms, so other roles are left out."""

FUNCTIONS = {
    "app.drop_revision_tables(text, text)": (ENGINE,),
    "app.drop_leftover_tables(text, integer)": (ENGINE,),
    "external.hide_asset(text)": (ENGINE, GATEWAY),
    "external.style_asset(text, jsonb, jsonb, jsonb)": (ENGINE, GATEWAY),
}
"""Functions that run as the owner, with the roles that may call them."""


async def apply(conn: AsyncConnection[Any], tables: Models) -> None:
    """Grant the rights, in the migration's transaction and as the owner of the tables. Other tables are left alone."""
    external = tables is EXTERNAL_TABLES
    if not external and tables is not TABLES:
        return
    for function in _functions(external=external):
        await conn.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC".encode())
    roles = await _present_roles(conn)
    if not roles:
        return
    await conn.execute(";\n".join(statements(roles, tables, external=external)).encode())
    maker = maker_of_tables(external=external)
    if maker in roles:
        for table in await _names(conn, queries("roles").feature_tables_of_others, owner=maker):
            await conn.execute(f"ALTER TABLE {table} OWNER TO {maker}".encode())
    for role in _readers(roles, external=external):
        if unread := await _names(conn, queries("roles").feature_tables_unread, role=role):
            await conn.execute(f"GRANT SELECT ON {', '.join(unread)} TO {role}".encode())


def maker_of_tables(*, external: bool) -> DatabaseRole:
    """Return the role that makes, and so owns, tables of features: the loader inside, the exporting worker outside."""
    return ENGINE if external else LOADER


def statements(roles: Sequence[DatabaseRole], models: Models, *, external: bool) -> Iterator[str]:
    """Yield the statements. They first revoke all rights, so that a release can also take rights away."""
    schemas = list(dict.fromkeys(model.__sql_schema__ for model in models))
    views = view_names(models)
    names = ", ".join([*(table_name(model) for model in models), *views])
    yield f"CREATE SCHEMA IF NOT EXISTS {FEATURES}"
    yield f"CREATE SCHEMA IF NOT EXISTS {STAGING}"
    for role in roles:
        yield f"REVOKE ALL ON {names} FROM {role}"
        yield f"REVOKE ALL ON SCHEMA {', '.join(schemas)} FROM {role}"
        for model in models:
            yield from _of_table(role, model, right(role, model, external=external))
        for schema in dict.fromkeys(
            model.__sql_schema__ for model in models if right(role, model, external=external) != Right()
        ):
            yield f"GRANT USAGE ON SCHEMA {schema} TO {role}"
        for view in views:
            if role in VIEWS[view]:
                yield f"GRANT SELECT ON {view} TO {role}"
    for function in _functions(external=external):
        for role in set(FUNCTIONS[function]) & set(roles):
            yield f"GRANT USAGE ON SCHEMA {function.partition('.')[0]} TO {role}"
            yield f"GRANT EXECUTE ON FUNCTION {function} TO {role}"
    yield from _of_features(roles, external=external)


def _functions(*, external: bool) -> list[str]:
    return [function for function in FUNCTIONS if function.startswith("external.") == external]


def _of_table(role: DatabaseRole, model: type[Entity], right: Right) -> Iterator[str]:
    table = table_name(model)
    if right.privileges:
        yield f"GRANT {', '.join(right.privileges)} ON {table} TO {role}"
    if right.columns:
        yield f"GRANT UPDATE ({column_list(right.columns)}) ON {table} TO {role}"
    if right.read_columns:
        yield f"GRANT SELECT ({column_list(right.read_columns)}) ON {table} TO {role}"


def _of_features(roles: Sequence[DatabaseRole], *, external: bool) -> Iterator[str]:
    """Yield the rights on tables of features. They belong to their maker; other roles read the finished ones only."""
    maker = maker_of_tables(external=external)
    makers = ["CURRENT_USER"]
    if maker in roles:
        makers.append(maker)
        yield f"GRANT USAGE, CREATE ON SCHEMA {FEATURES}, {STAGING} TO {maker}"
    for role in _readers(roles, external=external):
        yield f"GRANT USAGE ON SCHEMA {FEATURES} TO {role}"
        for owner in makers:  # staging too: a table keeps its rights when it is moved
            yield (
                f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {FEATURES}, {STAGING}"
                f" GRANT SELECT ON TABLES TO {role}"
            )


def _readers(roles: Sequence[DatabaseRole], *, external: bool) -> list[DatabaseRole]:
    return [role for role in roles if role in ((EXTERNAL,) if external else (ENGINE, GATEWAY, READER))]


async def _names(conn: AsyncConnection[Any], statement: LiteralString, **parameters: str) -> list[str]:
    """Return the feature tables to change: only those, as there may be many, and a change locks a table."""
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(statement, {"schemas": [FEATURES, STAGING], **parameters})
        return [str(row[0]) for row in await cursor.fetchall()]


async def deviations(conn: AsyncConnection[Any], tables: Models = TABLES) -> list[str]:
    """Return where roles that the current one is a member of may do less or more with our tables than they should."""
    texts = []
    for role in await _present_roles(conn):
        for model in tables:
            expected = set(right(role, model, external=tables is EXTERNAL_TABLES).privileges)
            actual = await _privileges(conn, role, model)
            texts += [f"{role} may not {name} {table_name(model)}" for name in sorted(expected - actual)]
            texts += [f"{role} may {name} {table_name(model)}" for name in sorted(actual - expected)]
    return texts


async def _privileges(conn: AsyncConnection[Any], role: DatabaseRole, model: type[Entity]) -> set[str]:
    parameters = {"role": role.value, "table": table_name(model), "privileges": list(WRITE)}
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").table_privileges, parameters)
        return {str(row[0]) for row in await cursor.fetchall()}


async def _present_roles(conn: AsyncConnection[Any]) -> list[DatabaseRole]:
    """Return the roles of geomill that this installation has."""
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").present_roles, {"roles": [role.value for role in LIMITED_ROLES]})
        return [DatabaseRole(row[0]) for row in await cursor.fetchall()]
