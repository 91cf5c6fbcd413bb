"""`geomill keys`: who may call the gateway. Straight on the database: whoever reaches that is the administrator."""

from __future__ import annotations

import getpass
import json
import re
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from geomill.cli import context
from geomill.domain.access.api_key import ApiKey, Secret, require_binding
from geomill.domain.access.principal import Role
from geomill.errors import InputError
from geomill.store import keys as store
from geomill.store.pool import Connection

app = typer.Typer(no_args_is_help=True, help="Keys for the HTTP API.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UNITS = {"m": 60, "h": 3600, "d": 86_400}
LONGEST_SECONDS = 3650 * 86_400


@app.command()
def create(
    roles: Annotated[list[Role], typer.Option("--role", help="What its holder may do; may be repeated.")],
    platform: Annotated[
        str | None, typer.Option(metavar="ID", help="The platform that a submitter submits for.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Who holds it; shown in the audit.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="90d", help="When it ends: minutes, hours or days.")] = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is printed now and never again."""
    require_binding(frozenset(roles), platform)
    seconds = seconds_of(expires) if expires else None
    secret = Secret.new()
    wanted = checked_name(secret.key_id if name is None else name)

    async def work(conn: Connection) -> ApiKey:
        return await store.create(
            conn,
            secret,
            name=wanted,
            roles=roles,
            platform_id=platform,
            created_by=_user(),
            expires_seconds=seconds,
        )

    key = context.with_database(work)
    if as_json:
        _print_json({"key": secret.reveal(), **_shown(key)})
    else:
        typer.echo(secret.reveal())
        typer.echo(f"'{key.name}' may now call as {', '.join(key.roles)}; this key is not shown again", err=True)


@app.command("list")
def list_keys(as_json: Json = False) -> None:
    """Every key: whose it is, what it may, until when, and when it was last used."""
    found = context.with_database(store.everything)
    if as_json:
        _print_json([_shown(key) for key in found])
    elif found:
        Console().print(_table(found))
    else:
        typer.echo("no keys yet; 'geomill keys create --help' says how to make one")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its id or its name.")], as_json: Json = False
) -> None:
    """Refuse a key from now on; gateways notice within ten seconds."""
    found = context.with_database(lambda conn: store.revoke(conn, key))
    if as_json:
        _print_json(_shown(found))
    else:
        typer.echo(f"revoked {found.key_id} ({found.name})")


def seconds_of(text: str) -> int:
    """`90d`, `12h` or `30m`."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})([mhd])", text)
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InputError(f"--expires '{text}' is no time of at most ten years", remedy="write it as 90d, 12h or 30m")
    return seconds


def checked_name(name: str) -> str:
    if not 1 <= len(name) <= 64 or not name.isprintable() or name != name.strip():
        raise InputError("the name of a key has 1 to 64 printable characters", remedy="choose another --name")
    return name


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return "command line"


def _shown(key: ApiKey) -> dict[str, Any]:
    return key.model_dump(mode="json", exclude={"secret_hash"})


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _table(found: list[ApiKey]) -> Table:
    table = Table(Column("id", no_wrap=True), "name", "roles", "platform", "expires", "last used", "revoked", box=None)
    for key in found:
        moments = (key.expires_at, key.last_used_at, key.revoked_at)
        shown = (f"{moment:%Y-%m-%d %H:%M}" if moment else "" for moment in moments)
        table.add_row(key.key_id, key.name, ", ".join(key.roles), key.platform_id or "", *shown)
    return table
