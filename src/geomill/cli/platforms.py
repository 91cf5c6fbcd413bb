"""`geomill platforms`: register partner applications and set what they may do, through the gateway."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from geomill.cli.client import gateway
from geomill.cli.printing import Json, print_table
from geomill.domain.assets.platform import Platform, own_container
from geomill.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Register partner applications and set what they may do.")

PlatformId = Annotated[str, typer.Argument(metavar="PLATFORM", help="Id of the partner application.")]
Required = Annotated[
    list[str],
    typer.Option(
        "--required",
        metavar="NAME",
        help="An identifier that each submission must have; may be repeated, order counts.",
    ),
]
Workflows = Annotated[
    list[str] | None,
    typer.Option("--workflow", metavar="ID", help="A workflow that it may choose; may be repeated."),
]
Containers = Annotated[
    list[str] | None,
    typer.Option(
        "--container", metavar="NAME", help="Another container in bronze that it may submit from; may be repeated."
    ),
]
Optional = Annotated[
    list[str] | None,
    typer.Option("--optional", metavar="NAME", help="An identifier that a submission may have; may be repeated."),
]


@app.command("list")
def list_platforms(
    inactive: Annotated[bool, typer.Option("--inactive", help="Include inactive ones.")] = False,
    as_json: Json = False,
) -> None:
    """List partner applications."""
    with gateway() as client:
        platforms = client.platforms.all(inactive=inactive)
    if as_json:
        typer.echo(json.dumps(to_jsonable_python(platforms), indent=2))
        return
    print_table(("platform", "name", "identifiers", "active"), map(_row, platforms), empty="There are no platforms.")


def _row(platform: Platform) -> tuple[str, ...]:
    refs = [*platform.required_refs, *(f"[{name}]" for name in platform.optional_refs)]
    return platform.platform_id, platform.display_name, ", ".join(refs), "yes" if platform.is_active else "no"


@app.command()
def show(platform_id: PlatformId, as_json: Json = False) -> None:
    """Show one partner application."""
    with gateway() as client:
        platform = client.platforms.get(platform_id)
    typer.echo(platform.model_dump_json(indent=2) if as_json else _readable(platform))


@app.command()
def create(
    platform_id: PlatformId,
    display_name: Annotated[str, typer.Option("--name", help="Display name.")],
    required: Required,
    optional: Optional = None,
    description: Annotated[str | None, typer.Option("--description", help="Description.")] = None,
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
        typer.echo(_readable(client.platforms.create(body)))


@app.command()
def allow(platform_id: PlatformId, workflows: Workflows = None, containers: Containers = None) -> None:
    """Set which workflows a partner application may choose and which containers it may submit from."""
    if workflows is None and containers is None:
        raise InputError("there is nothing to change", remedy="give --workflow or --container, or both")
    permissions = {"workflows": workflows, "containers": containers}
    _change(platform_id, {name: value for name, value in permissions.items() if value is not None})


@app.command()
def activate(platform_id: PlatformId) -> None:
    """Accept submissions of a partner application again."""
    _change(platform_id, {"is_active": True})


@app.command()
def deactivate(platform_id: PlatformId) -> None:
    """Refuse submissions of a partner application. Its assets stay."""
    _change(platform_id, {"is_active": False})


def _change(platform_id: str, changes: dict[str, Any]) -> None:
    with gateway() as client:
        typer.echo(_readable(client.platforms.change(platform_id, **changes)))


def _readable(platform: Platform) -> str:
    optional = f", optional {', '.join(platform.optional_refs)}" if platform.optional_refs else ""
    state = "active" if platform.is_active else "takes no submissions"
    own = own_container(platform.platform_id)
    workflows = "the configured ones" if platform.workflows is None else ", ".join(platform.workflows) or "none"
    return (
        f"{platform.platform_id}  {platform.display_name}  {state}\n"
        f"  identifiers {', '.join(platform.required_refs)}{optional}\n"
        f"  workflows {workflows}\n"
        f"  containers {', '.join([own, *platform.containers])}"
    )
