"""`geomill settings | audit`: the settings of a gateway, and the changes that operators have made."""

from __future__ import annotations

from typing import Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table, short
from geomill.domain.access.operator_audit import OperatorAction


def settings(
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that are set.")] = False,
    as_json: Json = False,
) -> None:
    """List the settings in effect. Secrets are masked."""
    with gateway_or_database() as client:
        listed = [setting for setting in client.operations.settings() if setting.is_set or not changed]
    if as_json:
        print_json(listed)
        return
    rows = [(setting.name, short(setting.value), "set" if setting.is_set else "") for setting in listed]
    print_table(("setting", "value", ""), rows, empty="No setting is set; every default applies.")


def audit(
    action: Annotated[OperatorAction | None, typer.Option(help="Only this kind of change.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of changes to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the changes that operators have made, the newest first."""
    with gateway_or_database() as client:
        entries = client.operations.audit(action=action, limit=limit).entries
    if as_json:
        print_json(entries)
        return
    rows = [
        (entry.at, entry.actor, entry.action, entry.target, entry.reason or short(entry.details)) for entry in entries
    ]
    print_table(("when", "who", "did", "to", "why"), rows, empty="Operators have changed nothing yet.")
