"""Processes under their own roles. A superuser or an owner would hide missing rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg
import pytest
from httpx import ASGITransport, AsyncClient

from geomill.api import create_app
from geomill.catalogue.databases import migrate_external
from geomill.cli.context import make_ready
from geomill.domain.access.database_role import DatabaseRole
from geomill.domain.access.principal import Role
from geomill.errors import ConflictError
from geomill.settings import AccessSettings, QueueSettings
from geomill.store import keys, schema_objects
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from geomill.store.pool import open_pool
from geomill.store.presence import lacking
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import bearing, make_key
from tests.owners import Split

PROCESSES = (DatabaseRole.ENGINE, DatabaseRole.GATEWAY, DatabaseRole.READER)


@contextmanager
def another_release(split: Split, *statements: str) -> Iterator[None]:
    """The database was migrated by another release, and some of it is not there."""
    with psycopg.connect(split.url(DatabaseRole.OWNER), autocommit=True) as conn:
        conn.execute("COMMENT ON SCHEMA dagapp IS 'of another release'")
        for statement in statements:
            conn.execute(statement)  # type: ignore[arg-type]
    try:
        yield
    finally:
        asyncio.run(_migrate(split))


async def _migrate(split: Split) -> None:
    async with await connect(split.url(DatabaseRole.OWNER)) as conn:
        await migrate(conn)


@asynccontextmanager
async def gateway(split: Split) -> AsyncIterator[AsyncClient]:
    app = create_app(split.url(DatabaseRole.GATEWAY), WorkflowRegistry([]), QueueSettings(), AccessSettings())
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    key = await make_key(split.admin, Role.ADMIN)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", headers=bearing(key)) as client,
    ):
        yield client


@pytest.mark.parametrize("role", PROCESSES)
def test_a_role_that_owns_nothing_sees_that_all_is_there(split: Split, role: DatabaseRole) -> None:
    asyncio.run(make_ready(split.url(role), private=False))
    with another_release(split):
        asyncio.run(make_ready(split.url(role), private=False))


@pytest.mark.parametrize("role", PROCESSES)
def test_a_role_that_owns_nothing_sees_what_is_missing(split: Split, role: DatabaseRole) -> None:
    async def missing() -> list[str]:
        async with await connect(split.url(role)) as conn:
            return await lacking(conn)

    with another_release(split, "ALTER TABLE dagapp.dag_jobs DROP COLUMN callback_url"):
        steps = asyncio.run(missing())
        assert steps[0] == "add the column dagapp.dag_jobs.callback_url"
        assert "create the index idx_dag_jobs_callback on dagapp.dag_jobs" in steps
        with pytest.raises(ConflictError, match="geomill db migrate"):
            asyncio.run(make_ready(split.url(role), private=False))


@pytest.mark.parametrize("role", PROCESSES)
def test_a_role_that_owns_nothing_sees_what_was_lost(split: Split, role: DatabaseRole) -> None:
    with psycopg.connect(split.url(DatabaseRole.OWNER), autocommit=True) as conn:
        conn.execute("ALTER TABLE dagapp.dag_jobs DISABLE TRIGGER dag_jobs_follow")
    try:
        with pytest.raises(ConflictError, match="the trigger dag_jobs_follow on"):
            asyncio.run(make_ready(split.url(role), private=False))
    finally:
        asyncio.run(_migrate(split))
    asyncio.run(make_ready(split.url(role), private=False))


@pytest.mark.parametrize("role", [DatabaseRole.ENGINE, DatabaseRole.EXTERNAL])
def test_nor_is_it_hidden_outside(split: Split, role: DatabaseRole) -> None:
    async def losses() -> list[str]:
        async with await connect(split.url(role, outside=True)) as conn:
            return await schema_objects.losses(conn)

    owner = split.url(DatabaseRole.OWNER, outside=True)
    assert asyncio.run(losses()) == []
    with psycopg.connect(owner, autocommit=True) as conn:
        conn.execute("DROP TRIGGER collections_trigger ON pgstac.collections")
    try:
        assert asyncio.run(losses()) == ["the trigger collections_trigger on pgstac.collections is missing"]
    finally:
        asyncio.run(migrate_external(owner))
    assert asyncio.run(losses()) == []


def test_the_gateway_s_own_role_is_ready_and_does_not_migrate(split: Split) -> None:
    async def ask() -> tuple[list[str], dict[str, object]]:
        async with gateway(split) as client:
            ready = (await client.get("/health/ready")).json()["reasons"]
            answer = await client.post("/api/v1/bootstrap/migrate", params={"confirm": "yes"})
            return ready, {"status": answer.status_code, **answer.json()}

    ready, answer = asyncio.run(ask())
    assert ready == ["no orchestrator is alive", "no worker is alive"]
    assert (answer["status"], answer["changed"]) == (200, False)
    with another_release(split, "ALTER TABLE dagapp.dag_jobs DROP COLUMN callback_url"):
        ready, answer = asyncio.run(ask())
        assert "add the column dagapp.dag_jobs.callback_url" in ready[0]
        assert (answer["status"], answer["code"]) == (503, "database_unfit")
        assert "as the role that owns the database" in str(answer)


async def test_a_reader_notes_which_keys_were_used_and_writes_nothing_else(split: Split) -> None:
    secret = await make_key(split.admin, Role.READER)
    async with open_pool(split.url(DatabaseRole.READER), size=1) as pool, pool.connection() as conn:
        await keys.used(conn, {secret.key_id})
        record = await keys.find(conn, secret.key_id)
        assert record is not None
        assert record.key.last_used_at is not None
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await conn.execute("UPDATE app.api_keys SET last_used_at = now()")
        await conn.execute("SET default_transaction_read_only = off")
        for statement in (
            "UPDATE app.api_keys SET roles = '[]'",
            "DELETE FROM app.geospatial_assets",
            "INSERT INTO catalogue.pending (asset_id, reason) VALUES ('x', 'y')",
            "DELETE FROM pgstac.items",
            "SELECT * FROM dagapp.dag_jobs",
            "SELECT * FROM app.asset_audit",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await conn.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE app.geospatial_assets SET approval_state = 'approved'",
        "UPDATE app.geospatial_assets SET deleted_by = 'x', deleted_at = now()",
        "INSERT INTO app.platforms (platform_id) VALUES ('x')",
        "SELECT secret_hash FROM app.api_keys",
        "DELETE FROM app.asset_audit",
        "CREATE TABLE geo.mine (id bigint)",
    ],
)
def test_the_engine_decides_nothing(split: Split, statement: str) -> None:
    with (
        psycopg.connect(split.url(DatabaseRole.ENGINE), autocommit=True) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute(statement)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT result_data FROM dagapp.dag_jobs",
        "SELECT * FROM dagapp.dag_queue",
        "SELECT * FROM app.geospatial_assets",
        "SELECT * FROM pgstac.items",
        "SET ROLE geomill_engine",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "CREATE EXTENSION dblink",
    ],
)
def test_a_task_process_sees_nothing_but_features(split: Split, statement: str) -> None:
    with psycopg.connect(split.url(DatabaseRole.LOADER), autocommit=True) as conn:
        conn.execute("SELECT job_id, completed_at FROM dagapp.dag_jobs")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(statement)  # type: ignore[arg-type]
