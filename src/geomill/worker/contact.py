"""Until when a worker may go on with its tasks, by its own clock.

The others give a silent worker's tasks away after `silent_seconds`. A worker that is cut off, or was frozen, cannot ask
them, but it can count: its tasks end before that, with a margin. So a task has one worker at a time.

While the server itself answers that it takes nobody, because it is down or recovers, nobody can give anything away.
After its return everybody has `SETTLE_SECONDS` to come back. So an outage of the server, however long, ends no task.

What it does badly: a server whose host has vanished does not answer, and looks like a cut. And with a second server, as
in a failover by name, the refusal of the first says nothing about what the second one does.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

from geomill.store.instances import SETTLE_SECONDS
from geomill.worker.children.clock import clock

HOLD = 0.8
"""The part of the others' patience that a worker uses. The rest is for ending its tasks."""
PROBE_SECONDS = 2
SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108
"""Where libpq looks when the URL names no host."""


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
        """The database noted a heartbeat that was sent at `asked`. What was lost before stays lost."""
        self.check()
        self.until = max(self.until, sent_at + self._hold)

    def refused(self, asked_at: float) -> None:
        """The server was down at `asked`."""
        self.check()
        self.until = max(self.until, asked_at + min(SETTLE_SECONDS, self._hold) * HOLD)


def refuses(url: str) -> bool:
    """Whether the server itself says that it takes nobody: it is down, starts, stops or recovers. Silence is no answer,
    nor is the refusal of one of several servers. Blocks for some seconds at most."""
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
