"""The HTTP server of `geomill gateway` and `geomill serve`. A module of its own, so other commands do not import it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from fastapi import FastAPI

from geomill.cli.connections import BoundedProtocol, Limits
from geomill.cli.memory import raise_file_limit
from geomill.settings import ConnectionSettings

log = logging.getLogger(__name__)

GRACE_SECONDS = 10
"""The time that running requests have when the server stops."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `serve`: a requested stop is not a failure."""
        yield


def configuration(app: FastAPI, settings: ConnectionSettings) -> uvicorn.Config:
    """Return uvicorn's configuration. X-Forwarded-For is trusted from the configured proxies only; by default there are
    none."""
    limits = Limits(
        settings.head_limit,
        settings.head_seconds,
        settings.body_seconds,
        settings.connections_per_address,
        settings.proxies,
    )
    return uvicorn.Config(
        app,
        http=partial(BoundedProtocol, limits=limits),  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )


async def serve(app: FastAPI, listener: socket.socket, settings: ConnectionSettings) -> None:
    server = _Server(configuration(app, settings))
    raise_file_limit()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

    def stop() -> None:
        if gateway := getattr(app.state, "gateway", None):
            gateway.streams.close()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    host, port = listener.getsockname()[:2]
    log.info("listening on http://%s:%s", host, port, extra={"action": "listen"})
    await server.serve(sockets=[listener])
