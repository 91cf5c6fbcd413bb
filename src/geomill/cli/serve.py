"""`geomill serve`: serves tiles, features and catalogue of one zone, without the platform's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from geomill.cli import context, link_key
from geomill.cli.gateway import Host, Port, listen
from geomill.domain.access.database_role import DatabaseRole
from geomill.domain.addresses import is_loopback
from geomill.domain.objectname import Zone
from geomill.errors import SettingsError
from geomill.process import run_async


class ServedZone(StrEnum):
    INTERNAL = "internal"
    EXTERNAL = "external"

    @property
    def files(self) -> Zone:
        return Zone.EXTERNAL if self is ServedZone.EXTERNAL else Zone.SILVER


def serve(
    zone: Annotated[
        ServedZone,
        typer.Option("--zone", help="internal serves what each caller may see; external serves what is public."),
    ],
    host: Host = None,
    port: Port = None,
) -> None:
    """Serve tiles, features and catalogue of one zone. Any number may run behind a balancer."""
    from geomill.api.app import LOOPBACK_NAMES
    from geomill.cli.memory import limit_memory
    from geomill.cli.serving import serve as run
    from geomill.serve.app import create_serving_app
    from geomill.serve.services import Services

    settings = context.settings()
    address = host or settings.gateway.gateway_host
    context.role_logging()
    number = settings.serving.serve_port if port is None else port
    with listen(address, number) as listener, _database(zone) as url:
        hosts = (*LOOPBACK_NAMES, address.lower()) if is_loopback(address) else ()
        key = None if zone is ServedZone.EXTERNAL else link_key.ensure(settings)
        services = Services(zone.files, url, context.storage(), key)
        app = create_serving_app(services, url, settings.access, hosts=hosts)
        limit_memory(settings.connection.serve_memory_mb)
        run_async(run(app, listener, settings.connection))


@contextmanager
def _database(zone: ServedZone) -> Iterator[str]:
    if zone is ServedZone.INTERNAL:
        with context.ready_database(DatabaseRole.READER, patience=context.ROLE_PATIENCE_SECONDS) as url:
            yield url
        return
    external = context.external_database_url(DatabaseRole.EXTERNAL)
    if external is None:
        raise SettingsError("the external zone has no database", remedy="set GEOMILL_EXTERNAL_DATABASE_URL")
    yield external
