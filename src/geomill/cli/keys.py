"""`geomill keys`: create, list and revoke keys for the gateway.

These commands use the database directly, since anybody with access to it is an administrator.
"""

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
from geomill.domain.access.principal import MayName, Role
from geomill.errors import InputError
from geomill.store import keys as store
from geomill.store.pool import Connection

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke keys for the HTTP API.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UNITS = {"m": 60, "h": 3600, "d": 86_400}
LONGEST_SECONDS = 3650 * 86_400


@app.command()
def create(
    roles: Annotated[list[Role], typer.Option("--role", help="A role of its holder; may be repeated.")],
    platform: Annotated[
        str | None, typer.Option(metavar="ID", help="The partner application that a submitter submits for.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of its holder; shown in the audit.")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="90d", help="Lifetime in minutes (m), hours (h) or days (d).")
    ] = None,
    may_name: Annotated[
        MayName, typer.Option(help="Whether its holder may, must or must not name the person for whom it acts.")
    ] = MayName.ALLOWED,
    as_json: Json = False,
) -> None:
    """Create a key and print it. It is not shown again."""
    require_binding(frozenset(roles), platform)
    seconds = seconds_of(expires) if expires else None
    secret = Secret.new()
    holder = checked_name(secret.key_id if name is None else name)

    async def work(conn: Connection) -> ApiKey:
        return await store.create(
            conn,
            secret,
            name=holder,
            roles=roles,
            platform_id=platform,
            may_name=may_name,
            created_by=_user(),
            expires_seconds=seconds,
        )

    key = context.with_database(work)
    if as_json:
        _print_json({"key": secret.reveal(), **_shown(key)})
    else:
        typer.echo(secret.reveal())
        typer.echo(f"'{key.name}' may now call as {', '.join(key.roles)}. This key is not shown again.", err=True)


@app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List all keys with their names, roles, expiry and last use."""
    keys = context.with_database(store.everything)
    if as_json:
        _print_json([_shown(key) for key in keys])
    elif keys:
        Console().print(_table(keys))
    else:
        typer.echo("There are no keys. 'geomill keys create --help' shows how to create one.")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id or name of the key.")], as_json: Json = False
) -> None:
    """Revoke a key. Gateways refuse it within ten seconds."""
    revoked = context.with_database(lambda conn: store.revoke(conn, key))
    if as_json:
        _print_json(_shown(revoked))
    else:
        typer.echo(f"revoked {revoked.key_id} ({revoked.name})")


def seconds_of(text: str) -> int:
    """Parse a lifetime such as `90d`, `12h` or `30m`."""
    lifetime = re.fullmatch(r"([1-9][0-9]{0,6})([mhd])", text)
    seconds = int(lifetime[1]) * UNITS[lifetime[2]] if lifetime else 0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InputError(
            f"--expires '{text}' is not a lifetime of at most ten years", remedy="write it as 90d, 12h or 30m"
        )
    return seconds


def checked_name(name: str) -> str:
    if not 1 <= len(name) <= 64 or not name.isprintable() or name != name.strip():
        raise InputError(
            f"the name {name!r} is not 1 to 64 printable characters without outer spaces",
            remedy="choose another --name",
        )
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


def _table(keys: list[ApiKey]) -> Table:
    table = Table(Column("id", no_wrap=True), "name", "roles", "platform", "expires", "last used", "revoked", box=None)
    for key in keys:
        moments = (key.expires_at, key.last_used_at, key.revoked_at)
        shown = (f"{moment:%Y-%m-%d %H:%M}" if moment else "" for moment in moments)
        table.add_row(key.key_id, key.name, ", ".join(key.roles), key.platform_id or "", *shown)
    return table
