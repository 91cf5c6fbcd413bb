"""Decides until when a worker may go on with its tasks, by its own clock.

After `silent_seconds` orchestrators give the tasks of a silent worker to others. A worker that was cut off or frozen
cannot ask them, but it can count: it ends its tasks before that, with a margin. So a task has one worker at a time.

While the server refuses all connections, because it is down or recovers, no task can be given away. After its return
all processes have `SETTLE_SECONDS` to come back. So an outage of the server ends no task, however long it is.

Weaknesses: a server whose host has vanished does not answer, which looks like a cut network. With a second server, as
in a failover by name, the refusal of the first says nothing about the second.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

from geomill.store.instances import SETTLE_SECONDS
from geomill.worker.children.clock import clock

HOLD = 0.8
"""The part of `silent_seconds` that a worker uses. The rest is for ending its tasks."""
PROBE_SECONDS = 2
SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108
"""The folders where libpq looks for a socket if the URL names no host."""


class Contact:
    def __init__(self, silent_seconds: float, on_loss: Callable[[], None]) -> None:
        self._hold = silent_seconds * HOLD
        self._on_loss = on_loss
        self.until = clock() + self._hold

    @property
    def is_lost(self) -> bool:
        return clock() >= self.until

    def check(self) -> None:
        if self.is_lost:
            self._on_loss()

    def heard(self, sent_at: float) -> None:
        """Record that the database has stored a heartbeat that was sent at `sent_at`. Tasks that were lost before stay
        lost."""
        self.check()
        self.until = max(self.until, sent_at + self._hold)

    def refused(self, asked_at: float) -> None:
        """Record that the server refused connections at `asked_at`."""
        self.check()
        self.until = max(self.until, asked_at + min(SETTLE_SECONDS, self._hold) * HOLD)


def refuses(url: str) -> bool:
    """Whether the server itself refuses connections, because it is down, starts, stops or recovers. Silence does not
    count, nor does the refusal of one of several servers. Blocks for a few seconds at most."""
    parts = conninfo_to_dict(url)
    host, port = str(parts.get("hostaddr") or parts.get("host") or ""), str(parts.get("port") or "5432")
    if "," in host or "," in port or not port.isdecimal():
        return False
    ping = PGconn.ping(make_conninfo(url, connect_timeout=PROBE_SECONDS).encode())
    if ping == Ping.NO_RESPONSE:
        places = [host] if host else SOCKET_FOLDERS
        return all(_nobody_listens(place, int(port)) for place in places)
    return ping == Ping.REJECT


def _nobody_listens(host: str, port: int) -> bool:
    try:
        if host.startswith("/"):
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(PROBE_SECONDS)
                line.connect(f"{host}/.s.PGSQL.{port}")
        else:
            socket.create_connection((host, port), PROBE_SECONDS).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except OSError:
        return False
    return False
