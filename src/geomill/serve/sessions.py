"""What asyncpg's sessions lack: it cannot be told to notice a network that drops packets without a word."""

from __future__ import annotations

import os
import socket
from typing import Any

import asyncpg

from geomill.store.connection import PROBES, SERVER_NETWORK, SILENCE_SECONDS
from geomill.store.pool import IDLE_IN_TRANSACTION

NETWORK_SETTINGS = {**SERVER_NETWORK, **IDLE_IN_TRANSACTION}
"""For `server_settings`: the server's side, and the end of a transaction that was forgotten."""

_OPTIONS = {
    "TCP_USER_TIMEOUT": SILENCE_SECONDS * 1000,
    "TCP_KEEPIDLE": PROBES["idle"],
    "TCP_KEEPINTVL": PROBES["interval"],
    "TCP_KEEPCNT": PROBES["count"],
}


def watch_network(conn: asyncpg.Connection[Any]) -> None:
    """Our side, of a new session. asyncpg shows its socket to nobody, hence the private name."""
    transport = conn._transport  # noqa: SLF001
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as own:
        if own.family == socket.AF_UNIX:
            return
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS.items():
            if hasattr(socket, name):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
