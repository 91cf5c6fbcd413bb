"""`geomill platforms`: partner applications and their identifiers, through the gateway."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from geomill.cli.client import gateway
from geomill.domain.assets.platform import own_container
from geomill.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Partner applications and their identifiers.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PlatformId = Annotated[str, typer.Argument(metavar="PLATFORM")]
Required = Annotated[
    list[str], typer.Option("--required", metavar="NAME", help="An identifier it must give, in order.")
]
Workflows = Annotated[
    list[str] | None,
    typer.Option("--workflow", metavar="ID", help="A workflow that its partners may name; may be repeated."),
]
Containers = Annotated[
    list[str] | None,
    typer.Option("--container", metavar="NAME", help="A container in bronze that it may submit from, besides its own."),
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
    workflows: Workflows = None,
    containers: Containers = None,
) -> None:
    """Register a partner application."""
    body = {
        "platform_id": platform_id,
        "display_name": display_name,
        "required_refs": required,
        "optional_refs": optional or [],
        "description": description,
        "workflows": workflows,
        "containers": containers or [],
    }
    with gateway() as client:
        typer.echo(_readable(client.post("/api/platforms", body)))


@app.command()
def allow(platform_id: PlatformId, workflows: Workflows = None, containers: Containers = None) -> None:
    """Say which workflows its partners may name, and which containers they may submit from."""
    if workflows is None and containers is None:
        raise InputError("there is nothing to change", remedy="give --workflow or --container, or both")
    named = {"workflows": workflows, "containers": containers}
    _change(platform_id, {name: value for name, value in named.items() if value is not None})


@app.command()
def activate(platform_id: PlatformId) -> None:
    """Let a partner application submit."""
    _change(platform_id, {"is_active": True})


@app.command()
def deactivate(platform_id: PlatformId) -> None:
    """Take no more submissions of a partner application. Its assets stay."""
    _change(platform_id, {"is_active": False})


def _change(platform_id: str, changes: dict[str, Any]) -> None:
    with gateway() as client:
        platform = client.get(f"/api/platforms/{platform_id}")
        body = {name: platform[name] for name in ("display_name", "description", "optional_refs", "is_active")}
        typer.echo(_readable(client.call("PUT", f"/api/platforms/{platform_id}", body={**body, **changes})))


def _readable(found: dict[str, Any]) -> str:
    optional = f", optional {', '.join(found['optional_refs'])}" if found["optional_refs"] else ""
    state = "active" if found["is_active"] else "takes no submissions"
    own = own_container(found["platform_id"])
    workflows = "the configured ones" if found["workflows"] is None else ", ".join(found["workflows"]) or "none"
    return (
        f"{found['platform_id']}  {found['display_name']}  {state}\n"
        f"  identifiers {', '.join(found['required_refs'])}{optional}\n"
        f"  workflows {workflows}\n"
        f"  containers {', '.join([own, *found['containers']])}"
    )
