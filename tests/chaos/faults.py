"""What is done to the platform while it works. Seeded: the same seed gives the same sequence of faults."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.chaos.platform import ChaosPlatform

PATIENCE_SECONDS = 30.0
MOST_CONNECTIONS = 400


@dataclass
class Faults:
    platform: ChaosPlatform
    seed: int
    pause: tuple[float, float] = (0.3, 1.2)
    counts: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds after each fault until something was done again."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._kinds: list[tuple[int, str, Callable[[], None]]] = [
            (6, "kill -9 of a worker", lambda: self._kill("worker")),
            (6, "kill -9 of an orchestrator", lambda: self._kill("orchestrator")),
            (3, "SIGTERM of a worker", lambda: self._terminate("worker")),
            (3, "SIGTERM of an orchestrator", lambda: self._terminate("orchestrator")),
            (3, "SIGSTOP of a process", self._freeze),
            (4, "killed backends", self._kill_backends),
            (1, "restart of PostgreSQL", lambda: self.platform.restart_postgres("fast")),
            (1, "crash of PostgreSQL", lambda: self.platform.restart_postgres("immediate")),
            (3, "duplicated and reordered messages", self._shuffle_queue),
            (2, "no connection left", self._take_all_connections),
            (2, "a clock that is off by up to a day", self._skew_a_clock),
        ]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        weights = [weight for weight, _, _ in self._kinds]
        while not self._stop.wait(self._random.uniform(*self.pause)):
            _, name, act = self._random.choices(self._kinds, weights)[0]
            begun = time.monotonic()
            try:
                done = self._progress()
                act()
            except psycopg.OperationalError:
                continue  # the server is just restarting
            self.counts[name] += 1
            if self._goes_on(done):
                self.recoveries[name].append(time.monotonic() - begun)

    def _progress(self) -> int:
        query = "SELECT (SELECT count(*) FROM chaos.effects) + (SELECT sum(runs) FROM chaos.effects)"
        return int(str(self.platform.rows(query)[0][0] or 0))

    def _goes_on(self, done: int) -> bool:
        """The next fault comes when something was done again: where processes are killed faster than they can start,
        nothing would ever end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not self._stop.wait(0.05):
            try:
                if self._progress() > done:
                    return True
            except psycopg.OperationalError:
                continue
        return False

    def _victim(self, role: str) -> subprocess.Popen[bytes]:
        return self._random.choice(self.platform.processes[role])

    def _kill(self, role: str) -> None:
        victim = self._victim(role)
        victim.kill()
        victim.wait()
        self.platform.replace(role, victim)

    def _terminate(self, role: str) -> None:
        victim = self._victim(role)
        self.platform.replace(role, victim)
        victim.send_signal(signal.SIGTERM)
        self.platform.leaving.append(victim)

    def _freeze(self) -> None:
        """Longer than the threshold after which a silent process counts as dead."""
        victim = self._victim(self._random.choice(["worker", "orchestrator"]))
        victim.send_signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.5, 4.0))
        victim.send_signal(signal.SIGCONT)

    def _kill_backends(self) -> None:
        with psycopg.connect(self.platform.url, autocommit=True) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'geomill%%' AND datname = current_database()"
                " AND pid <> pg_backend_pid() AND random() < 0.5"
            )

    def _shuffle_queue(self) -> None:
        """Leases lost, order changed: as an at-least-once broker may do."""
        with psycopg.connect(self.platform.url, autocommit=True) as conn:
            conn.execute("UPDATE dagapp.dag_queue SET priority = (random() * 10)::int WHERE lease_token IS NULL")
            conn.execute(
                "UPDATE dagapp.dag_queue SET lease_token = NULL, leased_by = NULL, leased_until = NULL"
                " WHERE lease_token IS NOT NULL AND random() < 0.3"
            )

    def _take_all_connections(self) -> None:
        """Whoever has to reconnect now is turned away."""
        taken: list[psycopg.Connection[Any]] = []
        try:
            while len(taken) < MOST_CONNECTIONS:
                taken.append(psycopg.connect(self.platform.url, autocommit=True))
        except psycopg.OperationalError:
            self._kill_some(taken[0])
            time.sleep(self._random.uniform(0.5, 2.0))
        finally:
            for conn in taken:
                conn.close()

    def _kill_some(self, conn: psycopg.Connection[Any]) -> None:
        conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'geomill%%' AND datname = current_database() AND random() < 0.3"
        )

    def _skew_a_clock(self) -> None:
        """Time belongs to the database: a process whose own clock is wrong must do no harm."""
        role = self._random.choice(["worker", "orchestrator"])
        victim = self._victim(role)
        victim.kill()
        victim.wait()
        self.platform.replace(role, victim, skew=self._random.uniform(-86_400, 86_400))
