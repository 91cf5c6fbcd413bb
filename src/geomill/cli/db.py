"""`geomill db`: show and migrate the database schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from geomill.cli.printing import Json
from geomill.cli.private import EXTERNAL_DATABASE
from geomill.domain.access.database_role import INSIDE, OUTSIDE, DatabaseRole
from geomill.embedded import DATABASE
from geomill.store.administration import see_sessions, set_up_database, set_up_server
from geomill.store.connection import connect
from geomill.store.ddl import schema_text
from geomill.store.diff import Change
from geomill.store.migrate import MigrationPlan, MigrationReport, MigrationStatus
from geomill.store.migrate import migrate as migrate_database
from geomill.store.migrate import plan as plan_database
from geomill.store.migrate import status as database_status
from geomill.store.quoting import identifier, literal

app = typer.Typer(no_args_is_help=True, help="Show and migrate the database schema.")


_BOOTSTRAP_HEAD = """\
-- Creates the roles and databases of geomill. An administrator of the server runs this with psql. It can be run again.
-- Afterwards run `geomill db migrate` as the owner: it creates the tables and grants each role its rights.
\\set ON_ERROR_STOP on
"""


@app.command()
def ddl() -> None:
    """Print the schema as SQL. This needs no database."""
    typer.echo(schema_text(), nl=False)


@app.command()
def bootstrap(
    database: Annotated[str, typer.Option(help="Name of the internal database.")] = DATABASE,
    external: Annotated[
        str, typer.Option("--external-database", help="Name of the external zone's database.")
    ] = EXTERNAL_DATABASE,
    owner: Annotated[str, typer.Option(help="Role that owns and migrates both databases.")] = DatabaseRole.OWNER,
) -> None:
    """Print SQL that an administrator runs with psql to create the databases and a role for each process."""
    typer.echo(bootstrap_script(database, external, owner), nl=False)


@app.command()
def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Migrate the database and that of the external zone. Changes that would lose data are refused."""
    from geomill.cli.context import database_url, make_external_ready

    with database_url() as url:
        if dry_run:
            migration = asyncio.run(plan_url(url))
            typer.echo(_dump(plan_json(migration)) if as_json else plan_lines(migration))
            return
        report, external = asyncio.run(migrate_url(url)), make_external_ready()
    if as_json:
        typer.echo(_dump({**report_json(report), "external": report_json(external) if external else None}))
        return
    typer.echo(report_lines(report))
    if external and external.done:
        typer.echo(f"external zone:\n{report_lines(external)}")


@app.command()
def status(as_json: Json = False) -> None:
    """Show whether the schema is up to date, and the versions of PostgreSQL, PostGIS and pgstac."""
    from geomill.cli.context import database_url

    with database_url() as url:
        state = asyncio.run(status_url(url))
    typer.echo(_dump(status_json(state)) if as_json else status_lines(state))


@app.command()
def stop() -> None:
    """Stop the private server, for example if a killed command has left it running."""
    from geomill.cli.context import settings
    from geomill.embedded import Cluster

    stopped = Cluster(settings().database.data).stop()
    typer.echo("The private server was stopped." if stopped else "The private server was not running.")


def bootstrap_script(database: str, external: str, owner: str) -> str:
    """Return a script for psql that can be run again. On most servers only the extension postgis needs a superuser."""
    names = {role: owner if role is DatabaseRole.OWNER else role.value for role in DatabaseRole}
    parts = [_BOOTSTRAP_HEAD, *(f"{statement};" for statement in set_up_server(owner))]
    # The role that hands over a database and then works in it must be a member of the new owner.
    parts += [f"GRANT {identifier(owner)} TO CURRENT_USER;"]
    for name, roles in ((database, INSIDE), (external, OUTSIDE)):
        parts += ["", f"SELECT {literal(f'CREATE DATABASE {identifier(name)}')}"]
        parts += [f"WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = {literal(name)}) \\gexec"]
        parts += [f"\\connect {identifier(name)}"]
        parts += [f"{statement};" for statement in set_up_database(name, [names[role] for role in roles], owner)]
    parts += ["", "-- If this is refused, /metrics counts only the gateway's own sessions."]
    parts += [f"{see_sessions()};", "", "-- Each role needs a password. psql sends it encrypted:"]
    return "\n".join([*parts, *(f"--   \\password {identifier(name)}" for name in names.values())]) + "\n"


async def plan_url(url: str) -> MigrationPlan:
    async with await connect(url) as conn:
        return await plan_database(conn)


async def migrate_url(url: str) -> MigrationReport:
    async with await connect(url) as conn:
        return await migrate_database(conn)


async def status_url(url: str) -> MigrationStatus:
    async with await connect(url) as conn:
        return await database_status(conn)


def plan_json(plan: MigrationPlan) -> dict[str, Any]:
    return {
        "up_to_date": not plan.changes,
        "pending": _changes_json(plan.permitted),
        "destructive": _changes_json(plan.destructive),
    }


def report_json(report: MigrationReport) -> dict[str, Any]:
    return {"changed": bool(report.done), "done": _changes_json(report.done)}


def status_json(status: MigrationStatus) -> dict[str, Any]:
    return {
        **plan_json(status.plan),
        "server_version": status.fitness.server_version,
        "postgis_version": status.fitness.postgis_installed,
        "pgstac_version": status.pgstac,
    }


def plan_lines(plan: MigrationPlan) -> str:
    pending = [f"would {change.summary}" for change in plan.permitted]
    refused = [_refused(change) for change in plan.destructive]
    return "\n".join([*pending, *refused]) or "up to date: nothing to do"


def report_lines(report: MigrationReport) -> str:
    return "\n".join(f"done: {change.summary}" for change in report.done) or "up to date: nothing was done"


def status_lines(status: MigrationStatus) -> str:
    postgis = status.fitness.postgis_installed or f"not installed ({status.fitness.postgis_available} is available)"
    versions = (
        f"PostgreSQL {status.fitness.server_version}, PostGIS {postgis}, pgstac {status.pgstac or 'not installed'}"
    )
    state = "up to date" if status.up_to_date else plan_lines(status.plan)
    return f"{versions}\n{state}"


def _refused(change: Change) -> str:
    statements = "\n".join(f"    {statement};" for statement in change.statements)
    return f"would refuse to {change.summary}\n{statements}"


def _changes_json(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [{"summary": change.summary, "statements": list(change.statements)} for change in changes]


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)
