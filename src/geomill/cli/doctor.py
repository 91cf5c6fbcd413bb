"""`geomill doctor`: checks everything that geomill needs and says how to fix each problem."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

import typer

from geomill.cli import context
from geomill.cli.bus_examination import examine_bus
from geomill.cli.examination import (
    Diagnosis,
    Level,
    examine_database,
    examine_external,
    examine_machine,
    examine_storage,
    examine_workflows,
)
from geomill.cli.printing import Json
from geomill.cli.role_examination import examine_roles
from geomill.embedded import Cluster, State
from geomill.errors import GeomillError
from geomill.settings import Settings

_COLOURS = {Level.OK: typer.colors.GREEN, Level.WARN: typer.colors.YELLOW, Level.FAIL: typer.colors.RED}


def doctor(as_json: Json = False) -> None:
    """Check this machine, the database and the platform. The exit code is 1 if a check fails."""
    findings = _examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            _print(finding)
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(1)


def _examine() -> list[Diagnosis]:
    try:
        settings = context.settings()
    except GeomillError as error:
        return [Diagnosis.of("settings", error)]
    findings = [Diagnosis(Level.OK, "settings", "all are valid")]
    findings += examine_machine(settings)
    findings += examine_storage(settings)
    findings += examine_workflows(settings)
    findings += _service_bus(settings)
    findings += _database(settings)
    return findings


def _service_bus(settings: Settings) -> list[Diagnosis]:
    try:
        return asyncio.run(examine_bus(settings))
    except GeomillError as error:
        return [Diagnosis.of("service bus", error)]


def _database(settings: Settings) -> list[Diagnosis]:
    """Check the database. A stopped private server is started for the check, but none is created for it."""
    try:
        if settings.database.database_url is None and Cluster(settings.database.data).status().state is State.ABSENT:
            return [
                Diagnosis(Level.OK, "database", "none yet; the first command that needs one creates a private server")
            ]
        with context.database_url() as url:
            findings = asyncio.run(examine_database(url, settings.database.data))
            findings += asyncio.run(examine_roles(url))
            return [*findings, asyncio.run(examine_external(context.external_database_url()))]
    except GeomillError as error:
        return [Diagnosis.of("database", error)]


def _print(finding: Diagnosis) -> None:
    typer.secho(f"{finding.level.value:<5}", fg=_COLOURS[finding.level], nl=False)
    typer.echo(f"{finding.subject}: {finding.message}")
    if finding.remedy:
        typer.echo(f"     → {finding.remedy}")
