"""`geomill console`: a link that signs in to the console once."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from geomill.cli.client import gateway
from geomill.cli.printing import Json, print_json
from geomill.contract.sessions import NewSignInLink
from geomill.domain.access.principal import Role

app = typer.Typer(no_args_is_help=True, help="Sign in to the console in a browser.")


@app.callback()
def console() -> None:
    """Make `link` a command of its own, beside those that may come."""


@app.command()
def link(
    roles: Annotated[
        list[Role] | None, typer.Option("--role", help="Only this role of your key; may be repeated.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser of this machine.")] = False,
    as_json: Json = False,
) -> None:
    """Print a link that signs in to the console once, as the holder of your key."""
    with gateway() as client:
        created = client.session.create_link(NewSignInLink(roles=roles or None))
    if open_browser:
        webbrowser.open(created.url)
    if as_json:
        print_json(created)
    else:
        typer.echo(created.url)
        typer.echo(f"It works once, until {created.expires_at:%H:%M} UTC.", err=True)
