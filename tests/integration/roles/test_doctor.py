"""The doctor reports roles with too many or too few rights, and how to correct them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from geomill.cli.examination import Level, examine_database, examine_external
from geomill.cli.role_examination import examine_roles
from geomill.domain.access.database_role import DatabaseRole
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from tests.owners import Split


async def test_a_superuser_is_too_much(split: Split) -> None:
    (finding,) = await examine_roles(split.admin)
    assert finding.level is Level.WARN
    assert "superuser" in finding.message
    assert "geomill db bootstrap" in finding.remedy


async def test_who_may_make_roles_is_too_much(split: Split) -> None:
    with psycopg.connect(split.admin, autocommit=True) as admin:
        admin.execute("ALTER ROLE geomill_owner CREATEROLE")
        try:
            finding, *_ = await examine_roles(split.url(DatabaseRole.OWNER))
        finally:
            admin.execute("ALTER ROLE geomill_owner NOCREATEROLE")
    assert (finding.level, "create roles" in finding.message) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("statement", "level", "says"),
    [
        ("REVOKE UPDATE ON dagapp.dag_jobs FROM geomill_engine", Level.FAIL, "geomill_engine may not UPDATE dagapp"),
        ("GRANT SELECT ON app.api_keys TO geomill_loader", Level.WARN, "geomill_loader may SELECT app.api_keys"),
    ],
)
async def test_less_and_more_than_a_process_needs(split: Split, statement: str, level: Level, says: str) -> None:
    url = split.url(DatabaseRole.OWNER)
    assert [finding.level for finding in await examine_roles(url)] == [Level.OK]
    with psycopg.connect(split.admin, autocommit=True) as admin:
        admin.execute(statement)  # type: ignore[arg-type]
    _, finding = await examine_roles(url)
    assert finding.level is level
    assert says in finding.message
    async with await connect(url) as conn:
        await migrate(conn)
    assert [finding.level for finding in await examine_roles(url)] == [Level.OK]


@pytest.mark.parametrize("role", [DatabaseRole.OWNER, DatabaseRole.ENGINE, DatabaseRole.GATEWAY, DatabaseRole.READER])
async def test_each_role_may_ask(split: Split, role: DatabaseRole, tmp_path: Path) -> None:
    findings = await examine_database(split.url(role), tmp_path)
    assert not [finding for finding in findings if finding.level is Level.FAIL]


async def test_the_gateway_s_role_may_ask_of_the_external_database(split: Split) -> None:
    """It hides entries there, and reads nothing else. Pages have operators run the doctor beside a gateway."""
    finding = await examine_external(split.url(DatabaseRole.GATEWAY, outside=True))
    assert finding.level is Level.WARN
    assert "permission denied" in finding.message


async def test_the_external_server_s_role_may_ask_of_its_database(split: Split) -> None:
    assert (await examine_external(split.url(DatabaseRole.EXTERNAL, outside=True))).level is Level.OK
