"""The HTTP server of gateway and services. Apart from the commands, so that others do not import it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

log = logging.getLogger(__name__)

GRACE_SECONDS = 10
"""For requests under way when the gateway is told to stop."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: a stop that was asked for is no failure."""
        yield


async def serve(app: FastAPI, listener: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    server = _Server(config)
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
