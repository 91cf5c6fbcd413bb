"""The private cluster: start, stop, status, url.

`start` may be called by any number of processes at once. Whoever gets the lock does the work, the others then find
the server running. The server is a daemon: it outlives its starter, until somebody calls `stop`.

Both ways in ask for the password by SCRAM: the Unix socket, which `url` gives because it is faster, and a TCP port on
the loopback address, for tools that know no sockets.
"""

from __future__ import annotations

import hmac
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

from geomill.embedded import binaries, config, creation, logs, ports, postmaster
from geomill.embedded.account import Account
from geomill.embedded.binaries import Binaries
from geomill.embedded.place import DataPlace, write
from geomill.embedded.postmaster import Postmaster
from geomill.errors import EmbeddedError

StopMode = Literal["smart", "fast", "immediate"]
_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
# Recovery after a crash replays up to max_wal_size.
START_SECONDS = 120
STOP_SECONDS = 60.0
# How long the processes of a killed server may hold on to its shared memory.
LINGER_SECONDS = 10.0
PORT_ATTEMPTS = 3


class State(StrEnum):
    ABSENT = "absent"
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    state: State
    folder: Path
    log_folder: Path
    version: int | None = None
    pid: int | None = None
    port: int | None = None
    socket_folder: Path | None = None


class Cluster:
    """`settings` are server settings that win over our own, but not over the user's postgresql.local.conf."""

    def __init__(self, data: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._data = Path(data)
        self._settings = dict(settings or {})
        self._started_here = False

    def start(self) -> bool:
        """Makes the cluster if need be and starts it. True when this call started it, False when it was running."""
        with self._translated():
            place = DataPlace.of(self._data)
            if self._is_ready(place):
                return False
            place.require_writable()
            with place.locked():
                self._started_here = self._start(DataPlace.of(self._data))
        return self._started_here

    def stop(self, mode: StopMode = "fast") -> bool:
        """Stops the server and waits for its end. False when it was not running."""
        with self._translated():
            place = DataPlace.of(self._data)
            if postmaster.running(place.pgdata) is None:
                return False
            with place.locked():
                server = postmaster.running(place.pgdata)
                if server is not None:
                    os.kill(server.pid, _SIGNALS[mode])
                    self._wait(lambda: postmaster.running(place.pgdata) is None, STOP_SECONDS, "stop", mode)
                return server is not None

    def status(self) -> ClusterStatus:
        with self._translated():
            place = DataPlace.of(self._data)
            version = creation.version_of(place.pgdata)
            server = postmaster.running(place.pgdata)
            if server is None:
                state = State.ABSENT if version is None else State.STOPPED
                return ClusterStatus(state, place.home, place.log, version, port=place.port())
            state = _STATES.get(server.status, State.STARTING)
            return ClusterStatus(state, place.home, place.log, version, server.pid, server.port, server.socket_folder)

    def url(self, database: str = creation.DATABASE, *, role: str = creation.ROLE, tcp: bool = False) -> str:
        """Of the running server; it may have another port after a restart. `role` is its superuser, unless named."""
        with self._translated():
            place = DataPlace.of(self._data)
            server, password = postmaster.running(place.pgdata), place.password()
        if server is None or server.port is None or server.socket_folder is None:
            raise EmbeddedError(f"the private database in {self._data} is not running", remedy="start it first")
        if not password:
            missing = place.control / "password"
            raise EmbeddedError(f"the password file {missing} is missing", remedy="restore it from a backup")
        login = f"{role}:{quote(_password_of(role, password), safe='')}"
        path = quote(database, safe="")
        if tcp:
            return f"postgresql://{login}@127.0.0.1:{server.port}/{path}"
        return f"postgresql://{login}@/{path}?host={quote(str(server.socket_folder), safe='')}&port={server.port}"

    def password(self, role: str) -> str:
        with self._translated():
            return _password_of(role, DataPlace.of(self._data).password())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A server that others started is theirs to stop.
        if self._started_here:
            self.stop()

    def _start(self, place: DataPlace) -> bool:
        account = Account.of(place.pgdata)
        if self._settled(place) is not None:
            return False
        version = creation.version_of(place.pgdata)
        programs = binaries.find(version)
        place = place.prepared(account)
        if version is None:
            creation.create(place, programs, account, self._settings)
        self._launch(place, programs, account)
        return True

    def _is_ready(self, place: DataPlace) -> bool:
        server = postmaster.running(place.pgdata)
        return server is not None and server.is_ready

    def _settled(self, place: DataPlace) -> Postmaster | None:
        """The server once it is ready, or None once it is gone: its starter or stopper may have died half-way."""

        def settled() -> bool:
            server = postmaster.running(place.pgdata)
            return server is None or server.is_ready

        self._wait(settled, START_SECONDS, "become ready", "fast")
        return postmaster.running(place.pgdata)

    def _launch(self, place: DataPlace, programs: Binaries, account: Account) -> None:
        crashed = postmaster.recorded(place.pgdata) is not None
        postmaster.forget_stranger(place.pgdata)
        linger_until = time.monotonic() + (LINGER_SECONDS if crashed else 0)
        ports_left = PORT_ATTEMPTS
        command = [programs.pg_ctl, "start", "-s", "-w", "-t", str(START_SECONDS), "-D", str(place.pgdata)]
        while True:
            port = ports.free(place.port())
            self._configure(place, account, port)
            logs.begin(place.log)
            done = account.run([*command, "-l", str(logs.start_log(place.log))])
            if done.returncode == 0:
                return
            if not ports.is_free(port) and ports_left > 0:
                ports_left -= 1
            elif time.monotonic() < linger_until:
                time.sleep(0.2)
            else:
                creation.check(done, f"starting the private database in {place.home}", logs.tail(place.log))

    def _configure(self, place: DataPlace, account: Account, port: int) -> None:
        own = config.connection(port, place.socket_folder(account), place.log)
        write(place.config, config.render(config.workstation(config.memory()) | own | self._settings))
        place.keep_port(port)

    def _wait(self, condition: Callable[[], bool], seconds: float, verb: str, mode: StopMode) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                harder = "immediate" if mode == "fast" else "fast"
                raise EmbeddedError(
                    f"the private database in {self._data} did not {verb} within {seconds:.0f} seconds",
                    remedy=f"see its log, or stop it in the mode '{harder}'",
                )
            time.sleep(0.02)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise EmbeddedError(
                f"the private database in {self._data} cannot be used: {error.strerror or error}{where}",
                remedy="check the folder's permissions and the free disk space, or set GEOMILL_DATA to another folder",
            ) from error


_STATES = {postmaster.READY: State.RUNNING, postmaster.STOPPING: State.STOPPING}


def _password_of(role: str, secret: str) -> str:
    """Each role's password follows from the superuser's, and tells neither that one nor another's."""
    return secret if role == creation.ROLE else hmac.new(secret.encode(), role.encode(), "sha256").hexdigest()
