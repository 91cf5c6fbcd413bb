"""Free TCP ports on the loopback address."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free(preferred: int | None) -> int:
    """Return the preferred port if it is free, so that a URL survives a restart, or any free port."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server does: connections of the last run in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
