"""Where the outside may fail us: no server, no rights, no confirmation; and what the commands print."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from geomill.cli.db import app
from geomill.errors import DatabaseUnfit, DatabaseUnreachable, DestructiveMigration, InputError
from geomill.store.bootstrap import bootstrap_ddl, bootstrap_migrate
from geomill.store.connection import connect
from geomill.store.fitness import check_fitness
from geomill.store.migrate import migrate, plan, status


async def test_no_such_database(server):
    with pytest.raises(DatabaseUnreachable, match=r"database 'nowhere' at .*does not exist"):
        await connect(make_conninfo(server, dbname="nowhere"))


async def test_a_wrong_password_is_not_repeated(server):
    with pytest.raises(DatabaseUnreachable, match="no connection to database 'postgres'") as caught:
        await connect(make_conninfo(server, password="s3cret", host="127.0.0.1", port=1))
    assert "s3cret" not in str(caught.value)


async def test_the_server_is_fit(conn):
    fitness = await check_fitness(conn)
    assert int(fitness.server_version.split(".")[0]) >= 15
    assert fitness.postgis_installed


async def test_the_status_before_and_after(conn):
    assert not (await status(conn)).up_to_date
    await migrate(conn)
    assert (await status(conn)).up_to_date


async def test_a_role_without_rights_is_told_who_has_them(migrated):
    role = f"guest_{uuid4().hex[:8]}"
    await migrated.execute(f"CREATE ROLE {role}")
    await migrated.execute(f"SET ROLE {role}")
    with pytest.raises(DatabaseUnfit, match="permission denied for database"):
        await plan(migrated)
    await migrated.execute(f"RESET ROLE; DROP ROLE {role}")


async def test_bootstrap_wants_a_confirmation(conn):
    with pytest.raises(InputError, match=r"'confirm'.*confirm=yes"):
        await bootstrap_migrate(conn, confirm=False)
    assert (await bootstrap_migrate(conn, confirm=True)).done
    assert "CREATE TABLE dagapp.dag_jobs" in bootstrap_ddl()


@pytest.fixture
def run(empty_database, monkeypatch):
    """Runs `geomill db ...` against the database of this test."""
    monkeypatch.setenv("GEOMILL_DATABASE_URL", empty_database)

    def invoke(*arguments):
        return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout

    return invoke


def test_the_commands_in_the_order_of_a_first_installation(run):
    assert "would create table dagapp.dag_jobs" in run("migrate", "--dry-run")
    assert not json.loads(run("status", "--json"))["up_to_date"]
    assert "done: create table dagapp.dag_jobs" in run("migrate")
    assert run("migrate") == "up to date: nothing was done\n"
    assert run("migrate", "--dry-run") == "up to date: nothing to do\n"
    assert json.loads(run("migrate", "--json")) == {"changed": False, "done": [], "external": None}
    assert run("status").splitlines()[1] == "up to date"
    report = json.loads(run("status", "--json"))
    assert (report["up_to_date"], report["pending"], report["destructive"]) == (True, [], [])
    assert report["server_version"]
    assert report["postgis_version"]
    assert report["pgstac_version"]


def test_the_commands_show_what_they_refuse(run, empty_database):
    run("migrate")
    with psycopg.connect(empty_database) as conn:
        conn.execute("ALTER TABLE dagapp.dag_jobs ADD COLUMN old int")
    statement = "ALTER TABLE dagapp.dag_jobs DROP COLUMN old"
    assert f"would refuse to drop column old of dagapp.dag_jobs\n    {statement};" in run("migrate", "--dry-run")
    assert json.loads(run("migrate", "--dry-run", "--json"))["destructive"][0]["statements"] == [statement]
    with pytest.raises(DestructiveMigration) as caught:
        run("migrate")
    assert caught.value.statements == (statement,)
