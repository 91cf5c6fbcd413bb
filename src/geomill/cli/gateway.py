"""`geomill gateway`: the HTTP API, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from geomill.cli import context
from geomill.errors import ConflictError, SettingsError

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.", metavar="ADDRESS")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on.", min=0, max=65_535)]
AllowRemote = Annotated[bool, typer.Option("--allow-remote", help="Let other machines call, without credentials.")]


def gateway(host: Host = None, port: Port = None, allow_remote: AllowRemote = False) -> None:
    """Run the HTTP API. Any number may run behind a balancer."""
    import uvloop

    from geomill.api.app import LOOPBACK_NAMES, create_app
    from geomill.cli.serving import serve

    settings = context.settings()
    address = host or settings.gateway.gateway_host
    require_private(address, allow_remote=allow_remote)
    context.role_logging()
    catalogue = context.catalogue(context.handlers())
    number = settings.gateway.gateway_port if port is None else port
    with listen(address, number) as listener, context.ready_database() as url:
        hosts = () if allow_remote else (*LOOPBACK_NAMES, address.lower())
        uvloop.run(serve(create_app(url, catalogue, settings.queue, hosts=hosts), listener))


def require_private(host: str, *, allow_remote: bool) -> None:
    """The API has no credentials yet: whoever reaches it may do everything."""
    if not allow_remote and not _is_loopback(host):
        raise SettingsError(
            f"the gateway would answer on {host}, and whoever reaches it may run and cancel jobs: it asks for no key",
            remedy="put a proxy that asks before 127.0.0.1, or say --allow-remote if the network is yours alone",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """A bound socket, or an error that says who is in the way."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConflictError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}", remedy="choose another with --port"
        ) from error
    with listener:
        yield listener
