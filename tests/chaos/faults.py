"""The faults that a test can inflict on the running platform. Each fault is a context: it begins, lasts, and is
over."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from geomill.domain.engine.message import TASK_QUEUES
from geomill.errors import EmbeddedError
from tests.chaos.hosts import DATABASE_HOST, host_name
from tests.chaos.platform import ChaosPlatform, Process, StopMode
from tests.chaos.publishers import Life, Publisher
from tests.chaos.switch import Weather
from tests.chaos.users import Users, deadly
from tests.servicebus.running import RunningPeer

MOST_CONNECTIONS = 400
VICTIM_SECONDS = 5.0
MOST_LOG_FILES = 30
SESSIONS = "application_name LIKE 'geomill%' AND datname = current_database() AND pid <> pg_backend_pid()"


@dataclass
class FaultScene:
    """The platform, its users and the source of randomness that a fault works with."""

    platform: ChaosPlatform
    users: Users
    publisher: Publisher
    chance: random.Random

    def victim(self, role: str) -> Process:
        return self.chance.choice(self.platform.processes[role])

    def busiest(self, role: str) -> Process:
        """The process with the most work, so that a fault hits something; of gateways, any."""
        pids = [row[0] for row in self.platform.rows(BUSIEST[role])] if role in BUSIEST else []
        by_pid = {process.pid: process for process in self.platform.processes[role]}
        return next((by_pid[pid] for pid in pids if pid in by_pid), self.victim(role))


BUSIEST = {
    "orchestrator": (
        "SELECT i.pid FROM dagapp.dag_jobs j JOIN dagapp.dag_instances i ON i.instance_id = j.owner_id"
        " WHERE j.completed_at IS NULL GROUP BY i.pid ORDER BY bool_or(j.workflow_id = 'hold') DESC, count(*) DESC"
    ),
    "worker": (
        "SELECT i.pid FROM dagapp.dag_queue q JOIN dagapp.dag_instances i ON i.instance_id = q.leased_by"
        " GROUP BY i.pid ORDER BY count(*) DESC"
    ),
}


Act = Callable[[FaultScene], AbstractContextManager[None]]


@dataclass(frozen=True)
class Fault:
    name: str
    title: str
    act: Act
    seconds: float = 0.0
    """How long it lasts when it is looked at alone."""
    range: tuple[float, float] = (0.0, 0.0)
    """How long it may last in a storm."""
    weight: int = 1
    """How often it comes in a storm, beside the others; 0: never."""
    needs: str = ""
    """`network`, `hosts` or `disk`, where the system must allow it, or `bus`."""
    lasting: bool = False
    """Work must go on while it lasts. Then recovery counts from its beginning, otherwise from its end."""
    until_settled: bool = False
    """Looked at alone, it ends as soon as all that it hit has been done elsewhere; `seconds` is the most."""


@contextmanager
def _kill(scene: FaultScene, role: str) -> Iterator[None]:
    victim = scene.busiest(role)
    victim.kill()
    victim.wait()
    scene.platform.replace(role, victim)
    yield


@contextmanager
def _terminate(scene: FaultScene, role: str) -> Iterator[None]:
    victim = scene.victim(role)
    scene.platform.replace(role, victim)
    victim.send_signal(signal.SIGTERM)
    scene.platform.leaving.append(victim)
    yield


@contextmanager
def _freeze(scene: FaultScene, role: str) -> Iterator[None]:
    victim = scene.busiest(role)
    victim.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        victim.send_signal(signal.SIGCONT)


@contextmanager
def _kill_task_process(scene: FaultScene) -> Iterator[None]:
    """Kill the child of a worker, not the worker, as the kernel does when memory is short."""
    workers = {process.pid for process in scene.platform.processes["worker"]}
    children = [pid for pid, parent in _parents().items() if parent in workers]
    for pid in children[: max(1, len(children) // 2)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    yield


def _parents() -> dict[int, int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return parents


@contextmanager
def _skew(scene: FaultScene, hours: float) -> Iterator[None]:
    """Time belongs to the database: a process whose own clock is wrong must do no harm."""
    for role in ("worker", "orchestrator", "gateway"):
        victim = scene.victim(role)
        victim.kill()
        victim.wait()
        scene.platform.replace(role, victim, skew=hours * 3600)
    yield


@contextmanager
def _end_sessions(scene: FaultScene, which: str) -> Iterator[None]:
    scene.platform.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {SESSIONS} AND {which}")
    yield


@contextmanager
def _lose_listeners(scene: FaultScene) -> Iterator[None]:
    """Only the sessions that listen and hold the locks of the living; the pools stay."""
    scene.platform.execute(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l JOIN dagapp.dag_instances AS i"
        " ON (l.classid::bigint << 32) + l.objid::bigint = i.lock_key"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    )
    yield


@contextmanager
def _outage(scene: FaultScene, mode: StopMode) -> Iterator[None]:
    scene.platform.stop_postgres(mode)
    try:
        yield
    finally:
        scene.platform.start_postgres()


@contextmanager
def _crash_of_a_backend(scene: FaultScene) -> Iterator[None]:
    """The server ends every session and recovers by itself."""
    rows = scene.platform.rows(f"SELECT pid FROM pg_stat_activity WHERE {SESSIONS} LIMIT 1")
    for (pid,) in rows:
        os.kill(int(pid), signal.SIGKILL)
    yield


@contextmanager
def _read_only(scene: FaultScene) -> Iterator[None]:
    """Make the server refuse writes, as during a failover."""
    scene.platform.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    scene.platform.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        scene.platform.execute("ALTER SYSTEM RESET default_transaction_read_only")
        scene.platform.execute("SELECT pg_reload_conf()")


@contextmanager
def _start_read_only(scene: FaultScene) -> Iterator[None]:
    with _read_only(scene):
        scene.platform.restart_roles()
        yield


@contextmanager
def _lock_row(scene: FaultScene, query: str) -> Iterator[None]:
    """Lock a row that is being worked on. For a moment there may be none, so try until a deadline."""
    with scene.platform.connect() as conn:
        deadline = time.monotonic() + VICTIM_SECONDS
        conn.execute("BEGIN")
        while not conn.execute(query.encode()).fetchall() and time.monotonic() < deadline:
            conn.execute("ROLLBACK")
            time.sleep(0.01)
            conn.execute("BEGIN")
        yield


LOCK_A_JOB = (
    "SELECT job_id FROM dagapp.dag_jobs WHERE status = 'running' AND workflow_id = 'chaos'"
    " LIMIT 1 FOR UPDATE SKIP LOCKED"
)
LOCK_AN_ASSET = (
    "SELECT asset_id FROM app.geospatial_assets WHERE processing_status NOT IN ('completed', 'failed')"
    " LIMIT 1 FOR UPDATE SKIP LOCKED"
)
READ_SOMETHING = "SELECT count(*) FROM dagapp.dag_queue"


@contextmanager
def _leave_open(scene: FaultScene) -> Iterator[None]:
    """A transaction that somebody began and forgot: nothing that is deleted meanwhile can be cleaned away."""
    with scene.platform.connect() as conn:
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        conn.execute(READ_SOMETHING)
        yield


MIGRATED = ("dagapp.dag_jobs", "dagapp.dag_queue", "dagapp.dag_node_states", "app.geospatial_assets", "app.api_keys")


@contextmanager
def _add_columns(scene: FaultScene) -> Iterator[None]:
    """Add columns, as a migration does while roles run."""
    name = f"chaos_{scene.chance.randrange(10**9)}"
    for table in MIGRATED:
        with scene.platform.connect() as conn:
            conn.execute("SET lock_timeout = '5s'")
            conn.execute(f"ALTER TABLE {table} ADD COLUMN {name} text".encode())
    yield


REFUSING = """
CREATE OR REPLACE FUNCTION chaos.refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'this row is refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON app.geospatial_assets FOR EACH ROW
WHEN (NEW.platform_refs ->> 'dataset_id' LIKE 'refused%' AND NEW.processing_status IN ('completed', 'failed'))
EXECUTE FUNCTION chaos.refuse();
"""


@contextmanager
def _refuse_an_asset(scene: FaultScene) -> Iterator[None]:
    """Make the database refuse every end of an asset's job, the verdict included."""
    scene.platform.execute(REFUSING)
    life = Life(f"refused{scene.chance.randrange(10**9)}")
    scene.publisher.submit(life, 1, wait=False)
    try:
        yield
    finally:
        scene.platform.execute("DROP TRIGGER refuse ON app.geospatial_assets")


@contextmanager
def _kill_by_task(scene: FaultScene) -> Iterator[None]:
    scene.users.submit(deadly(f"deadly-{scene.chance.randrange(10**9)}"))
    yield


@contextmanager
def _take_all_connections(scene: FaultScene) -> Iterator[None]:
    """Take all connections, so that a process that has to reconnect is turned away."""
    with ExitStack() as stack:
        connections: list[psycopg.Connection[Any]] = []
        try:
            while len(connections) < MOST_CONNECTIONS:
                connections.append(stack.enter_context(scene.platform.connect()))
        except psycopg.OperationalError:
            connections[0].execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {SESSIONS} AND random() < 0.3".encode()
            )
        yield


@contextmanager
def _shuffle_queue(scene: FaultScene) -> Iterator[None]:
    """Leases lost, order changed: as an at-least-once broker may do."""
    scene.platform.execute("UPDATE dagapp.dag_queue SET priority = (random() * 10)::int WHERE lease_token IS NULL")
    scene.platform.execute(
        "UPDATE dagapp.dag_queue SET lease_token = NULL, leased_by = NULL, leased_until = NULL"
        " WHERE lease_token IS NOT NULL AND random() < 0.3"
    )
    yield


@contextmanager
def _lose_connections(scene: FaultScene, role: str = "") -> Iterator[None]:
    """Every packet of the connections that are there is dropped, and no other: nobody is told."""
    network = scene.platform.network
    assert network
    of_role = f"AND application_name LIKE 'geomill {role}%'" if role else ""
    query = f"SELECT client_port FROM pg_stat_activity WHERE client_addr = '{network.roles}' {of_role}"
    network.lose([int(port) for (port,) in scene.platform.rows(query)])
    try:
        yield
    finally:
        network.heal()


@contextmanager
def _lose_network(scene: FaultScene) -> Iterator[None]:
    """Nothing reaches the server, new connections neither."""
    network = scene.platform.network
    assert network
    network.lose_everything(scene.platform.port)
    try:
        yield
    finally:
        network.heal()


def _link(role: str, weather: Weather) -> Act:
    """Return a fault of one host's link: of PostgreSQL's, or that of the process of a role with the most work."""

    @contextmanager
    def act(scene: FaultScene) -> Iterator[None]:
        hosts = scene.platform.hosts
        assert hosts
        number = scene.platform.processes[role].index(scene.busiest(role)) if role else None
        with hosts.weather(DATABASE_HOST if number is None else host_name(role, number), weather):
            yield

    return act


def _faults_of_links() -> Iterator[Fault]:
    """The faults of all links. Where others can do the work of a host, or where packets pass, work must go on."""
    for role, whose in LINKS.items():
        for name, (what, weather) in WEATHERS.items():
            cut = name in CUTS
            replaced = role in ("orchestrator", "worker", "serve")
            yield Fault(
                f"{role or 'database'}-{name}",
                f"{whose} link {what}",
                _link(role, weather),
                120 if cut and replaced and role != "serve" else 20,
                (2, 20),
                1,
                "hosts",
                lasting=replaced or not cut,
                until_settled=cut and replaced and role != "serve",
            )


LINKS = {
    "": "PostgreSQL's",
    "orchestrator": "an orchestrator's",
    "worker": "a worker's",
    "gateway": "the gateway's",
    "serve": "the external server's",
}
CUTS = {
    "cut": ("cut", Weather(lost_out=1.0, lost_in=1.0)),
    "mute": ("cut outwards", Weather(lost_out=1.0)),
    "deaf": ("cut inwards", Weather(lost_in=1.0)),
}
WEATHERS = {
    **CUTS,
    "slow": ("200 ms slower, there and back", Weather(delay_seconds=0.1)),
    "lossy": ("losing 20 % of packets", Weather(lost_out=0.2, lost_in=0.2)),
}


@contextmanager
def _fill(scene: FaultScene, disk: str) -> Iterator[None]:
    """Fill a disk. The server may stop by itself; it is started again once there is room."""
    scene.platform.disks[disk].fill()
    try:
        if disk == "wal":
            _use_up_the_log(scene)
        yield
    finally:
        scene.platform.disks[disk].free()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(EmbeddedError, psycopg.OperationalError):
                scene.platform.start_postgres()
                scene.platform.rows("SELECT 1")
                break
            time.sleep(0.2)


def _use_up_the_log(scene: FaultScene) -> None:
    """Use up the log files that PostgreSQL keeps for reuse. Until then it needs no room."""
    with suppress(psycopg.OperationalError):
        for _ in range(MOST_LOG_FILES):
            scene.platform.execute("SELECT txid_current()")
            scene.platform.execute("SELECT pg_switch_wal()")


# Service Bus


def _peer(scene: FaultScene) -> RunningPeer:
    assert scene.platform.bus
    return scene.platform.bus


@contextmanager
def _cut_bus(scene: FaultScene) -> Iterator[None]:
    """Cut the connections now, and those that came back at the end."""
    _peer(scene).tell("cut")
    yield
    _peer(scene).tell("cut")


@contextmanager
def _away(scene: FaultScene, seconds: float) -> Iterator[None]:
    """Accept no connection until the fault is over, or for so long at most."""
    _peer(scene).tell("refuse", seconds)
    yield
    _peer(scene).tell("refuse", 0)


@contextmanager
def _busy_bus(scene: FaultScene) -> Iterator[None]:
    _peer(scene).tell("throttle", 60)
    yield
    _peer(scene).tell("throttle", 0)


@contextmanager
def _lose_locks(scene: FaultScene) -> Iterator[None]:
    for queue_name in TASK_QUEUES:
        _peer(scene).tell("expire", queue_name)
    yield


@contextmanager
def _forget(scene: FaultScene) -> Iterator[None]:
    _peer(scene).tell("drop", 1_000_000)
    yield
    _peer(scene).tell("drop", 0)


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("worker-killed", "kill -9 of a worker", lambda s: _kill(s, "worker"), weight=6),
        Fault("orchestrator-killed", "kill -9 of an orchestrator", lambda s: _kill(s, "orchestrator"), weight=6),
        Fault("gateway-killed", "kill -9 of a gateway", lambda s: _kill(s, "gateway"), weight=6),
        Fault("task-process-killed", "kill -9 of task processes", _kill_task_process, weight=3),
        Fault("worker-told", "SIGTERM of a worker", lambda s: _terminate(s, "worker"), weight=3),
        Fault("orchestrator-told", "SIGTERM of an orchestrator", lambda s: _terminate(s, "orchestrator"), weight=3),
        Fault(
            "worker-frozen",
            "a frozen worker",
            lambda s: _freeze(s, "worker"),
            150,
            (0.5, 45),
            2,
            lasting=True,
            until_settled=True,
        ),
        Fault(
            "orchestrator-frozen",
            "a frozen orchestrator",
            lambda s: _freeze(s, "orchestrator"),
            150,
            (0.5, 45),
            2,
            lasting=True,
            until_settled=True,
        ),
        Fault("deadly-task", "a task that kills its worker", _kill_by_task, 30, lasting=True),
        Fault("clock-behind", "clocks one hour behind", lambda s: _skew(s, -1)),
        Fault("clock-ahead", "clocks one hour ahead", lambda s: _skew(s, 1)),
        Fault("sessions-ended", "half of the sessions ended", lambda s: _end_sessions(s, "random() < 0.5"), weight=4),
        Fault("listeners-ended", "only the listening sessions ended", _lose_listeners, 75, weight=2, lasting=True),
        Fault("restart-2", "a restart of PostgreSQL, 2 s", lambda s: _outage(s, "fast"), 2, (0.1, 10), 2),
        Fault("crash-2", "a crash of PostgreSQL, 2 s", lambda s: _outage(s, "immediate"), 2, (0.1, 10), 2),
        Fault("backend-crash", "a crash of one backend", _crash_of_a_backend),
        Fault("outage-35", "PostgreSQL away for 35 s", lambda s: _outage(s, "fast"), 35, (25, 60)),
        Fault("outage-60", "PostgreSQL crashed, away for 60 s", lambda s: _outage(s, "immediate"), 60, (45, 60), 0),
        Fault("read-only", "PostgreSQL read-only for 20 s", _read_only, 20, (2, 20)),
        Fault("read-only-start", "started while PostgreSQL is read-only", _start_read_only, 10, (2, 10)),
        Fault(
            "silent-loss",
            "every connection lost silently",
            _lose_connections,
            120,
            (25, 40),
            1,
            "network",
            lasting=True,
            until_settled=True,
        ),
        Fault("network-down", "no packet passes for 20 s", _lose_network, 20, (2, 30), 1, "network"),
        Fault("job-row-locked", "a locked job row", lambda s: _lock_row(s, LOCK_A_JOB), 25, (2, 25), lasting=True),
        Fault(
            "asset-row-locked", "a locked asset row", lambda s: _lock_row(s, LOCK_AN_ASSET), 25, (2, 25), lasting=True
        ),
        Fault("asset-refused", "an asset row that is refused", _refuse_an_asset, 30, (5, 10), lasting=True),
        Fault("column-added", "columns added by a migration", _add_columns, 20, lasting=True),
        Fault("open-transaction", "a transaction left open", _leave_open, 60, (5, 60), lasting=True),
        Fault("no-connection", "no connection left", _take_all_connections, 5, (0.5, 5), 2),
        Fault("messages-shuffled", "messages doubled and out of order", _shuffle_queue, weight=3),
        Fault("tables-full", "the tables' disk full", lambda s: _fill(s, "tables"), 15, (2, 15), 1, "disk"),
        Fault("wal-full", "the log's disk full", lambda s: _fill(s, "wal"), 15, (2, 15), 1, "disk"),
        Fault("zone-full", "a zone's disk full", lambda s: _fill(s, "silver"), 10, (2, 10), 1, "disk", lasting=True),
        Fault("bus-cut", "every connection to Service Bus cut", _cut_bus, 3, (1, 10), 2, "bus", lasting=True),
        Fault("bus-away", "Service Bus away for 20 s", lambda s: _away(s, 20), 20, (2, 20), 2, "bus", lasting=True),
        Fault("bus-busy", "Service Bus refuses what is sent", _busy_bus, 10, (2, 10), 2, "bus", lasting=True),
        Fault("bus-locks-lost", "the locks of all permits lost", _lose_locks, 0, (0, 0), 2, "bus", lasting=True),
        Fault("bus-forgets", "Service Bus forgets what it confirmed", _forget, 5, (1, 5), 2, "bus", lasting=True),
        *_faults_of_links(),
    )
}
