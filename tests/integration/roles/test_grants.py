"""The rights of each role on each table, as the server reports them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import psycopg
import pytest

from geomill.domain.access.database_role import LIMITED_ROLES, DatabaseRole
from geomill.domain.assets.asset import BUSINESS_FIELDS, EXECUTION_FIELDS
from geomill.domain.entity import Entity
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.sql import queries
from geomill.store import grants, leftovers
from geomill.store.connection import connect
from geomill.store.describe import view_names
from geomill.store.leftovers import KeptFor, Leftover
from geomill.store.migrate import migrate
from geomill.store.pool import open_pool
from tests.owners import Split

ENGINE, GATEWAY, READER, LOADER, EXTERNAL = LIMITED_ROLES
PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
WRITE = {"SELECT", "INSERT", "UPDATE", "DELETE"}


def table(model: type[Entity]) -> str:
    return f"{model.__sql_schema__}.{model.__sql_table__}"


def allowed(url: str, role: str, models: Sequence[type[Entity]]) -> dict[str, set[str]]:
    """Privileges on whole tables; tables without any are left out."""
    privileges: dict[str, set[str]] = {}
    with psycopg.connect(url) as conn:
        for model in models:
            for privilege in PRIVILEGES:
                row = conn.execute("SELECT has_table_privilege(%s, %s, %s)", (role, table(model), privilege)).fetchone()
                if row and row[0]:
                    privileges.setdefault(table(model), set()).add(privilege)
    return privileges


def updatable(url: str, role: str, name: str) -> set[str]:
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND has_column_privilege(%s, attrelid, attnum, 'UPDATE')",
            (name, role),
        ).fetchall()
    return {row[0] for row in rows}


def of_schema(schema: str) -> set[str]:
    return {table(model) for model in TABLES if model.__sql_schema__ == schema}


RECORDS = {"catalogue.schema_objects", "catalogue.schema_steps"}
"""Written by migrations alone."""


def test_the_engine_writes_jobs_and_catalogue_and_reads_assets(split: Split) -> None:
    granted = allowed(split.admin, ENGINE, TABLES)
    cleaned = {"app.asset_leftovers", "app.uploads", "app.upload_parts", "app.extracts"}
    written = ((of_schema("dagapp") | of_schema("catalogue")) - RECORDS) | cleaned
    assert {name for name, rights in granted.items() if rights == WRITE} == written
    withheld = {"app.api_keys", "app.console_sessions", "app.asset_audit", "app.operator_audit"}
    read = (of_schema("app") | RECORDS) - cleaned - withheld
    assert {name for name, rights in granted.items() if rights == {"SELECT"}} == read
    assert set(granted) == written | {name for name, rights in granted.items() if rights == {"SELECT"}}


def test_engine_and_gateway_alone_read_the_views(split: Split) -> None:
    with psycopg.connect(split.admin) as conn:
        for view, role in ((view, role) for view in view_names(TABLES) for role in LIMITED_ROLES):
            row = conn.execute(
                "SELECT has_table_privilege(%(role)s, %(view)s, 'SELECT'),"
                " has_table_privilege(%(role)s, %(view)s, 'INSERT, UPDATE, DELETE')",
                {"role": role, "view": view},
            ).fetchone()
            assert row == (role in (ENGINE, GATEWAY), False), (view, role)


def test_the_engine_writes_execution_state_and_nothing_that_people_decide(split: Split) -> None:
    columns = updatable(split.admin, ENGINE, "app.geospatial_assets")
    assert columns == {*EXECUTION_FIELDS, "updated_at"}
    assert not columns & set(BUSINESS_FIELDS)
    assert updatable(split.admin, ENGINE, "app.platform_requests") == {"status", "last_error", "updated_at"}


def test_the_gateway_writes_rows_and_changes_no_table(split: Split) -> None:
    granted = allowed(split.admin, GATEWAY, TABLES)
    assert set(granted) == {table(model) for model in TABLES}
    assert all(rights == WRITE for name, rights in granted.items() if name not in RECORDS)
    assert all(granted[name] == {"SELECT"} for name in RECORDS)


def test_the_reader_reads_what_is_served_and_notes_which_keys_are_used(split: Split) -> None:
    granted = allowed(split.admin, READER, TABLES)
    assert set(granted) == {
        "app.geospatial_assets", "app.asset_revisions", "app.asset_leftovers", "app.api_keys", "app.asset_styles",
        "catalogue.collections", "catalogue.pending", "dagapp.dag_stage_jobs", *RECORDS,
    }  # fmt: skip
    assert all(rights == {"SELECT"} for rights in granted.values())
    assert updatable(split.admin, READER, "app.api_keys") == {"last_used_at"}


@pytest.mark.parametrize("role", [LOADER, EXTERNAL])
def test_others_have_no_table_of_ours(split: Split, role: DatabaseRole) -> None:
    assert allowed(split.admin, role, TABLES) == {}


def test_outside_the_engine_writes_and_the_external_server_reads(split: Split) -> None:
    names = {table(model) for model in EXTERNAL_TABLES}
    assert allowed(split.outside_admin, ENGINE, EXTERNAL_TABLES) == dict.fromkeys(names, WRITE)
    assert allowed(split.outside_admin, EXTERNAL, EXTERNAL_TABLES) == {name: {"SELECT"} for name in names}
    for role in (GATEWAY, READER, LOADER):
        assert allowed(split.outside_admin, role, EXTERNAL_TABLES) == {}


@pytest.mark.parametrize("role", LIMITED_ROLES)
def test_each_role_gets_into_its_own_databases_only(split: Split, role: DatabaseRole) -> None:
    inside, outside = split.url(role), split.url(role, outside=True)
    expected = (role is not EXTERNAL, role in (ENGINE, GATEWAY, EXTERNAL))
    assert (enters(inside), enters(outside)) == expected


@pytest.mark.parametrize("role", LIMITED_ROLES)
def test_functions_that_run_as_the_owner_are_for_those_who_need_them(split: Split, role: DatabaseRole) -> None:
    places = {
        "app.drop_revision_tables(text, text)": split.admin,
        "app.drop_leftover_tables(text, integer)": split.admin,
        "external.hide_asset(text)": split.outside_admin,
        "external.style_asset(text, jsonb, jsonb, jsonb)": split.outside_admin,
    }
    assert set(places) == set(grants.FUNCTIONS)
    for function, url in places.items():
        with psycopg.connect(url) as conn:
            row = conn.execute("SELECT has_function_privilege(%s, %s, 'EXECUTE')", (role, function)).fetchone()
            public = conn.execute("SELECT has_function_privilege('public', %s, 'EXECUTE')", (function,)).fetchone()
        assert (row, public) == ((role in grants.FUNCTIONS[function],), (False,))


def test_a_gateway_hides_what_is_outside_and_does_nothing_else_there(split: Split) -> None:
    with psycopg.connect(split.url(GATEWAY, outside=True), autocommit=True) as conn:
        assert conn.execute("SELECT external.hide_asset('a1')").fetchone() == (False,)
        assert conn.execute("SELECT external.style_asset('a1', '{}', NULL, '[]')").fetchone() == (False,)
        for statement in ("SELECT * FROM external.assets", "DELETE FROM external.assets", "CREATE TABLE geo.x ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement.encode())


def enters(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        if "does not have CONNECT privilege" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("role", LIMITED_ROLES)
def test_no_role_can_make_anything_but_the_loader_tables_of_features(split: Split, role: DatabaseRole) -> None:
    outside = role is EXTERNAL
    schemas = (
        ("public", "external", "geo") if outside else ("public", "app", "dagapp", "catalogue", "geo", "geo_staging")
    )
    with psycopg.connect(split.url(role, outside=outside), autocommit=True) as conn:
        row = conn.execute("SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user")
        assert row.fetchone() == (False,)
        for schema in schemas:
            may = role is LOADER and schema.startswith("geo")
            row = conn.execute("SELECT has_schema_privilege(%s, 'CREATE')", (schema,))
            assert row.fetchone() == (may,), schema
        conn.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("CREATE SCHEMA mine")


def test_a_table_of_features_is_read_by_who_serves_it_and_dropped_by_who_made_it(split: Split) -> None:
    with psycopg.connect(split.url(LOADER), autocommit=True) as conn:
        conn.execute("CREATE TABLE geo_staging.fields (id bigint)")
        conn.execute("ALTER TABLE geo_staging.fields SET SCHEMA geo")
        for role in (ENGINE, GATEWAY, READER):
            with psycopg.connect(split.url(role), autocommit=True) as other:
                assert other.execute("SELECT count(*) FROM geo.fields").fetchone() == (0,)
                with pytest.raises(psycopg.Error):
                    other.execute("DROP TABLE geo.fields")
        conn.execute("DROP TABLE geo.fields")


def test_the_rights_are_a_table_for_every_table(split: Split) -> None:
    """A new table has rights by its schema; a new schema has none until somebody decides."""
    schemas = {model.__sql_schema__ for model in TABLES}
    assert {schema for role, schema in grants._BY_SCHEMA if role is GATEWAY} == schemas


async def test_what_a_release_takes_away_is_gone_after_its_migration(split: Split) -> None:
    with psycopg.connect(split.admin, autocommit=True) as admin:
        admin.execute(f"GRANT ALL ON app.api_keys TO {LOADER}")
    async with await connect(split.url(DatabaseRole.OWNER)) as conn:
        await migrate(conn)
    assert allowed(split.admin, LOADER, TABLES) == {}


async def test_tables_of_the_owner_are_handed_to_the_loader_and_a_stranger_s_are_left_alone(split: Split) -> None:
    """A deployment with one role leaves tables of the owner behind."""
    with psycopg.connect(split.admin, autocommit=True) as admin:
        admin.execute("CREATE TABLE geo.strange (id bigint)")
    with psycopg.connect(split.url(DatabaseRole.OWNER), autocommit=True) as owner:
        owner.execute("CREATE TABLE geo.former (id bigint)")
    async with await connect(split.url(DatabaseRole.OWNER)) as conn:
        await migrate(conn)
    with psycopg.connect(split.admin, autocommit=True) as admin:
        rows = admin.execute(
            "SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relname IN ('former', 'strange')"
        ).fetchall()
        assert dict(rows) == {"former": "geomill_loader", "strange": admin.info.user}
        admin.execute("DROP TABLE geo.strange, geo.former")


async def test_the_engine_may_delete_leftovers(split: Split) -> None:
    """Run every statement of the duty. There is nothing to delete."""
    periods = KeptFor(timedelta(days=1), timedelta(days=1))
    async with open_pool(split.url(ENGINE), size=1) as pool, pool.connection() as conn:
        assert await leftovers.due(conn, periods, 10) == []
        async with leftovers.holding(conn, Leftover("none", 1, None), periods) as stem:
            assert stem is None
        (row,) = await (
            await conn.execute(queries("leftovers").drop_tables, {"asset_id": "none", "revision": 1})
        ).fetchall()
        assert row["dropped"] == []
        (row,) = await (await conn.execute("SELECT app.is_leftover('none', 1, now(), now()) AS leftover")).fetchall()
        assert row["leftover"] is False
