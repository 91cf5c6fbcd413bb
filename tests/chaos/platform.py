"""The platform under test: a PostgreSQL of its own, and gateways, orchestrators and workers as real processes with
their default settings."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import psycopg

from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.embedded import DATABASE, Cluster
from geomill.embedded.account import Account
from geomill.embedded.place import DataPlace
from geomill.store import keys
from geomill.store.pool import open_pool
from tests.chaos import disks, network
from tests.chaos.disks import Disk
from tests.chaos.hosts import Hosts
from tests.chaos.ledger import VARIABLE, Ledger
from tests.chaos.network import NETWORKS, Network
from tests.chaos.release import CURRENT, ROOT, Release
from tests.prepared import copy_prepared
from tests.servicebus.running import RunningPeer, running_peer

SKEWED = ROOT / "tests/chaos/skewed"
GATEWAY_PORT = 8100
OPTIONS: dict[str, list[str]] = {
    "orchestrator": [],
    "worker": ["--concurrency", "64"],
    "gateway": [],
    "serve": ["--zone", "external"],
}
SERVER = {"max_connections": "300", "max_wal_size": "256MB", "min_wal_size": "64MB"}
"""Little log, so that the disk it lies on can be small."""
START_SECONDS = 180.0
"""A busy machine takes long to start six processes."""
ROLES = ("orchestrator", "worker", "gateway", "serve")

StopMode = Literal["fast", "immediate"]
Process = subprocess.Popen[bytes]


@dataclass
class ChaosPlatform:
    orchestrators: int = 2
    workers: int = 2
    gateways: int = 2
    servers: int = 0
    """Servers of the external zone."""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of the roles. There are none by default, as users have it."""
    broker: str = "postgres"
    """`servicebus` brings the peer of the tests, and the faults of Service Bus."""
    bus: RunningPeer | None = None
    processes: dict[str, list[Process]] = field(default_factory=dict)
    leaving: list[Process] = field(default_factory=list)
    ended: int = 0
    """Processes that ended without being told to."""
    missing: dict[str, str] = field(default_factory=dict)
    """The abilities that this system lacks, with the reason."""
    external_url: str = ""
    """The external zone's database as an administrator reaches it, if the roles have one."""
    hosts: Hosts | None = None
    """A host for each role and for PostgreSQL. `tests/chaos/spread.py` has them; here there are none."""
    network: Network | None = None
    disks: dict[str, Disk] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> ChaosPlatform:
        self.folder = Path(tempfile.mkdtemp(prefix="gm-chaos-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._open_disks(stack)
            self._open_network(stack)
            self._start_server(stack)
            self._start_bus(stack)
            asyncio.run(self._prepare())
            self.log = stack.enter_context((self.folder / "roles.log").open("ab"))
            stack.callback(self._kill_everybody)
            self._start_roles()
            stack.callback(self._stack.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open_disks(self, stack: ExitStack) -> None:
        if reason := disks.why_not():
            self.missing["disk"] = reason
            return
        for name, place, megabytes in (("tables", "data", 6000), ("wal", "wal", 1000), ("silver", "zones/silver", 200)):
            self.disks[name] = stack.enter_context(Disk(self.folder / f"{name}.image", self.folder / place, megabytes))

    def _open_network(self, stack: ExitStack) -> None:
        self.missing["hosts"] = "all roles are on one host; --hosts gives each its own"
        if reason := network.why_not():
            self.missing["network"] = reason
            return
        self.network = stack.enter_context(Network())

    def _start_server(self, stack: ExitStack) -> None:
        data = self.folder / "data"
        self._make_database(data)
        place = DataPlace.of(data)
        if "wal" in self.disks:
            self._move_log(place.pgdata, self.disks["wal"].folder / "pg_wal")
        addresses = ",".join({"127.0.0.1": None, self.server_address: None})
        self._cluster = Cluster(data, settings={**SERVER, "listen_addresses": addresses})
        stack.callback(self._stop_at_last)
        with (place.pgdata / "pg_hba.conf").open("a", encoding="utf-8") as file:
            file.write(f"host all all {NETWORKS} scram-sha-256\n")
        self.start_postgres()
        self.url = self._cluster.url()
        self.roles_url = self._roles_url(DATABASE)
        self.port = urlsplit(self.roles_url).port or 5432

    def _make_database(self, data: Path) -> None:
        """Make a data folder whose private database is migrated and stopped."""
        copy_prepared(data, durable=True)

    def _roles_url(self, database: str) -> str:
        """Return the URL by which roles reach a database."""
        return self._cluster.url(database, tcp=True).replace("127.0.0.1", self.server_address)

    @property
    def server_address(self) -> str:
        """The address of PostgreSQL."""
        return self.network.server if self.network else "127.0.0.1"

    @property
    def bus_address(self) -> str:
        """The address of the peer of Service Bus."""
        return self.server_address

    def role_address(self, role: str, number: int) -> str:
        """Return the address that a role listens on."""
        return self.network.roles if self.network else "127.0.0.1"

    def _inside(self, role: str, number: int) -> list[str]:
        """Return the prefix of a role's command, which puts it into its network."""
        return self.network.inside if self.network else []

    def _start_bus(self, stack: ExitStack) -> None:
        if self.broker == "postgres":
            self.missing["bus"] = "the database alone is the broker; --broker servicebus brings the other"
            return
        self.bus = stack.enter_context(running_peer("--lock-seconds", "20", host=self.bus_address))
        connection_string = self.bus.options.connection_string or ""
        self.settings |= {"GEOMILL_BROKER": "servicebus", "SERVICE_BUS_CONNECTION_STRING": connection_string}

    def _move_log(self, pgdata: Path, target: Path) -> None:
        owner = Account.of(pgdata).uid
        shutil.copytree(pgdata / "pg_wal", target)
        for path in (target, *target.rglob("*")):
            os.chown(path, owner, -1)
        target.chmod(0o700)
        shutil.rmtree(pgdata / "pg_wal")
        (pgdata / "pg_wal").symlink_to(target)

    def _stop_at_last(self) -> None:
        for disk in self.disks.values():
            disk.free()
        self._cluster.stop("immediate")

    async def _prepare(self) -> None:
        secret = Secret.new()
        async with open_pool(self.url, size=1) as pool, pool.connection() as conn:
            await conn.execute("CREATE SCHEMA chaos")
            await keys.create(conn, secret, name="chaos", roles=[Role.ADMIN], created_by="chaos")
        self.key = secret.reveal()

    def _start_roles(self) -> None:
        counts = (self.orchestrators, self.workers, self.gateways, self.servers)
        for role, count in zip(ROLES, counts, strict=True):
            self.processes[role] = [self._start(role, number) for number in range(count)]
        self.wait_for_roles()

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger")

    @property
    def zones(self) -> Path:
        return self.folder / "zones"

    @property
    def gateway_urls(self) -> list[str]:
        return [self.role_url("gateway", number) for number in range(self.gateways)]

    def role_url(self, role: str, number: int) -> str:
        """Return the URL of a gateway or an external server."""
        return f"http://{self.role_address(role, number)}:{self._port(role, number)}"

    def client(self, number: int = 0, timeout: float = 5.0) -> httpx.Client:
        """Return a client of a gateway. It is closed with the platform."""
        headers = {"Authorization": f"Bearer {self.key}"}
        client = httpx.Client(base_url=self.gateway_urls[number % self.gateways], headers=headers, timeout=timeout)
        self._stack.callback(client.close)
        return client

    def wait_for_roles(self) -> None:
        """Gateways with all that they serve, and everybody else in the table of the living."""
        for number in range(self.gateways):
            with self.client(number) as client:
                self._wait_for_answer(client, "/health/ready")
                self._wait_for_answer(client, "/stac/collections")
        living = "SELECT count(*) FROM dagapp.dag_instances"
        self._wait(lambda: self.rows(living)[0][0] >= self.orchestrators + self.workers)

    def _wait_for_answer(self, client: httpx.Client, path: str) -> None:
        self._wait(partial(_answers, client, path))

    def _wait(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the roles did not start\n{self.log_tail()}")
            time.sleep(0.1)

    def _port(self, role: str, number: int) -> int:
        """Return the port of a role. In a network of their own, all ports are free for the roles."""
        own = self.network or self.hosts
        return (GATEWAY_PORT if own else 20_000 + os.getpid() % 20_000) + 10 * ROLES.index(role) + number

    def release(self, role: str, number: int) -> Release:
        """Return the release that a process runs."""
        return CURRENT

    def _start(self, role: str, number: int, skew: float = 0.0) -> Process:
        release = self.release(role, number)
        inherited = os.environ.get("PYTHONPATH", "")  # the source of another release may be on it
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")},
            **self.settings,
            "GEOMILL_DATABASE_URL": self.roles_url,
            "GEOMILL_DATA": str(self.zones),
            "GEOMILL_HANDLERS": "tests.chaos.handlers",
            "GEOMILL_WORKFLOWS": str(release.workflows),
            "GEOMILL_TASK_ENVIRONMENT": VARIABLE,
            VARIABLE: str(self.ledger.path),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(SKEWED) if skew else "", str(release.root), inherited])),
            "CHAOS_CLOCK_SKEW": str(skew),
        }
        command = [*self._inside(role, number), release.program("geomill"), role, *OPTIONS[role]]
        if role in ("gateway", "serve"):
            command += ["--host", self.role_address(role, number), "--port", str(self._port(role, number))]
        return subprocess.Popen(command, env=environ, cwd=release.root, stdout=self.log, stderr=self.log)

    def replace(self, role: str, victim: Process, skew: float = 0.0) -> None:
        with self._lock:  # the faults and the supervisor may both have seen it die
            processes = self.processes[role]
            if victim in processes:
                number = processes.index(victim)
                processes[number] = self._start(role, number, skew)

    def keep_alive(self) -> None:
        """Start each process again that ended by itself, as a supervisor does."""
        for role, processes in self.processes.items():
            for process in [process for process in processes if process.poll() is not None]:
                self.ended += 1
                self.replace(role, process)

    def restart_roles(self) -> None:
        """Start all processes at once, as when a machine comes back."""
        for role, processes in self.processes.items():
            for process in list(processes):
                process.kill()
                process.wait()
                self.replace(role, process)

    def _kill_everybody(self) -> None:
        everyone = [*self.leaving, *(process for processes in self.processes.values() for process in processes)]
        for process in everyone:
            process.kill()
        for process in everyone:
            process.wait()

    def stop_postgres(self, mode: StopMode) -> None:
        self._cluster.stop(mode)

    def start_postgres(self) -> None:
        self._cluster.start()

    def postmaster_pid(self) -> int | None:
        return self._cluster.status().pid

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join((self.folder / "roles.log").read_text(errors="replace").splitlines()[-lines:])

    def connect(self) -> psycopg.Connection[Any]:
        """Connect as an administrator, who is not bound by the faults that hit the others."""
        return psycopg.connect(
            self.url, autocommit=True, options="-c default_transaction_read_only=off", connect_timeout=5
        )

    def execute(self, statement: str) -> None:
        with self.connect() as conn:
            conn.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as conn:
            return conn.execute(query.encode()).fetchall()


def _answers(client: httpx.Client, path: str) -> bool:
    try:
        return client.get(path).status_code == 200
    except httpx.HTTPError:
        return False
