"""`geomill platforms`: partner applications and their identifiers, through the gateway."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from geomill.cli.client import gateway

app = typer.Typer(no_args_is_help=True, help="Partner applications and their identifiers.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PlatformId = Annotated[str, typer.Argument(metavar="PLATFORM")]
Required = Annotated[
    list[str], typer.Option("--required", metavar="NAME", help="An identifier it must give, in order.")
]
Optional = Annotated[list[str] | None, typer.Option("--optional", metavar="NAME", help="One that it may give.")]


@app.command("list")
def list_platforms(
    inactive: Annotated[bool, typer.Option("--inactive", help="Also those that take no submissions.")] = False,
    as_json: Json = False,
) -> None:
    """Partner applications."""
    with gateway() as client:
        found = client.get("/api/platforms", inactive=inactive)["platforms"]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table("platform", "name", "identifiers", "active", box=None)
    for one in found:
        refs = [*one["required_refs"], *(f"[{name}]" for name in one["optional_refs"])]
        table.add_row(one["platform_id"], one["display_name"], ", ".join(refs), "yes" if one["is_active"] else "no")
    Console().print(table)


@app.command()
def show(platform_id: PlatformId, as_json: Json = False) -> None:
    """One partner application."""
    with gateway() as client:
        found = client.get(f"/api/platforms/{platform_id}")
    typer.echo(json.dumps(found, indent=2) if as_json else _readable(found))


@app.command()
def create(
    platform_id: PlatformId,
    display_name: Annotated[str, typer.Option("--name", help="What people call it.")],
    required: Required,
    optional: Optional = None,
    description: Annotated[str | None, typer.Option("--description", help="What it is.")] = None,
) -> None:
    """Register a partner application."""
    body = {
        "platform_id": platform_id,
        "display_name": display_name,
        "required_refs": required,
        "optional_refs": optional or [],
        "description": description,
    }
    with gateway() as client:
        typer.echo(_readable(client.post("/api/platforms", body)))


@app.command()
def activate(platform_id: PlatformId) -> None:
    """Let a partner application submit."""
    _set_active(platform_id, active=True)


@app.command()
def deactivate(platform_id: PlatformId) -> None:
    """Take no more submissions of a partner application. Its assets stay."""
    _set_active(platform_id, active=False)


def _set_active(platform_id: str, *, active: bool) -> None:
    with gateway() as client:
        found = client.get(f"/api/platforms/{platform_id}")
        body = {name: found[name] for name in ("display_name", "description", "optional_refs")}
        typer.echo(_readable(client.call("PUT", f"/api/platforms/{platform_id}", body={**body, "is_active": active})))


def _readable(found: dict[str, Any]) -> str:
    optional = f", optional {', '.join(found['optional_refs'])}" if found["optional_refs"] else ""
    state = "active" if found["is_active"] else "takes no submissions"
    return (
        f"{found['platform_id']}  {found['display_name']}  {state}\n"
        f"  identifiers {', '.join(found['required_refs'])}{optional}"
    )
