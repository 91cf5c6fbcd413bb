"""`geomill gateway`: runs the HTTP API until SIGTERM or Ctrl-C."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from geomill.cli import context, link_key
from geomill.domain.access.database_role import DatabaseRole
from geomill.domain.addresses import is_loopback
from geomill.domain.objectname import Zone
from geomill.errors import ConflictError
from geomill.process import run_async

log = logging.getLogger(__name__)

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.", metavar="ADDRESS")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on.", min=0, max=65_535)]


def gateway(host: Host = None, port: Port = None) -> None:
    """Run the HTTP API, with tiles, features and catalogue. Any number may run behind a balancer."""
    from geomill.api.app import LOOPBACK_NAMES, create_app
    from geomill.api.links import Links
    from geomill.cli.memory import limit_memory
    from geomill.cli.serving import serve
    from geomill.platform.extracts import ExtractOffice
    from geomill.serve.services import Services
    from geomill.settings import gateway_settings

    settings = context.settings()
    address = host or settings.gateway.gateway_host
    context.role_logging()
    registry, job_types = context.handlers(), context.stage_jobs()
    workflow_registry = context.workflow_registry(registry, job_types)
    number = settings.gateway.gateway_port if port is None else port
    with (
        listen(address, number) as listener,
        context.ready_database(DatabaseRole.GATEWAY, patience=context.ROLE_PATIENCE_SECONDS) as url,
    ):
        hosts = (*LOOPBACK_NAMES, address.lower()) if is_loopback(address) else ()
        if not hosts:
            log.warning(
                "other machines can reach this gateway, and credentials cross the network unencrypted:"
                " put a proxy with TLS in front of it",
                extra={"action": "listen", "host": address},
            )
        key = link_key.ensure(settings)
        public_url = (settings.callback.public_url or "").rstrip("/")
        app = create_app(
            url,
            workflow_registry,
            settings.queue,
            settings.access,
            settings.platform,
            storage=context.storage(),
            job_types=job_types,
            handlers=registry,
            inspection_settings=settings.inspection,
            settings=gateway_settings(settings, gateway_host=address, gateway_port=number),
            hosts=hosts,
            services=Services(
                Zone.SILVER,
                context.reader_database_url() or url,
                context.storage(),
                key,
                ExtractOffice(workflow_registry, settings.queue.job_queue_name, settings.extract),
            ),
            links=Links(
                public_url, key, settings.serving.link_seconds, (settings.serving.external_url or "").rstrip("/")
            ),
            external_url=context.external_database_url(DatabaseRole.GATEWAY),
            streams_per_caller=settings.connection.streams_per_caller,
            upload_settings=settings.upload,
            retention=settings.retention,
            space_warning_bytes=settings.storage.space_warning_mb * 1_000_000,
            console_settings=settings.console,
        )
        limit_memory(settings.connection.serve_memory_mb)
        run_async(serve(app, listener, settings.connection))


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a listening socket. Raises `ConflictError` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConflictError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}", remedy="choose another port with --port"
        ) from error
    with listener:
        yield listener
