"""`geomill keys`: create, list and revoke keys for the gateway."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table
from geomill.contract.keys import KeyView
from geomill.domain.access.api_key import require_binding
from geomill.domain.access.principal import MayName, Role
from geomill.errors import InputError, NotFoundError, nearest

if TYPE_CHECKING:
    from geomill.client import Client

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke keys for the HTTP API.")

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
    order = {
        "roles": [role.value for role in roles],
        "name": None if name is None else checked_name(name),
        "platform_id": platform,
        "expires_seconds": seconds_of(expires) if expires else None,
        "may_name": may_name.value,
    }
    with gateway_or_database() as client:
        key = client.keys.create(order)
    if as_json:
        print_json(key)
    else:
        typer.echo(key.key)
        typer.echo(f"'{key.name}' may now call as {', '.join(key.roles)}. This key is not shown again.", err=True)


@app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List all keys with their names, roles, expiry and last use."""
    with gateway_or_database() as client:
        keys = _all_keys(client, revoked=True)
    if as_json:
        print_json(keys)
        return
    rows = [
        (key.key_id, key.name, key.roles, key.platform_id, key.expires_at, key.last_used_at, key.revoked_at)
        for key in keys
    ]
    empty = "There are no keys. 'geomill keys create --help' shows how to create one."
    print_table(("id", "name", "roles", "platform", "expires", "last used", "revoked"), rows, empty=empty)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id or name of the key.")], as_json: Json = False
) -> None:
    """Revoke a key. Gateways refuse it within ten seconds."""
    with gateway_or_database() as client:
        chosen = _find(_all_keys(client, revoked=False), key)
        client.keys.revoke(chosen.key_id)
        revoked = client.keys.get(chosen.key_id)
    if as_json:
        print_json(revoked)
    else:
        typer.echo(f"revoked {revoked.key_id} ({revoked.name})")


def _all_keys(client: Client, *, revoked: bool) -> list[KeyView]:
    keys: list[KeyView] = []
    cursor = None
    while True:
        page = client.keys.page(revoked=revoked, limit=1000, cursor=cursor)
        keys += page.keys
        cursor = page.next_cursor
        if cursor is None:
            return keys


def _find(keys: list[KeyView], name: str) -> KeyView:
    """Return the key with this id or, if there is none, with this name."""
    by_name = {key.name: key for key in keys} | {key.key_id: key for key in keys}
    if name not in by_name:
        raise NotFoundError(f"there is no key '{name}' that could be revoked", remedy=nearest(name, by_name))
    return by_name[name]


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
