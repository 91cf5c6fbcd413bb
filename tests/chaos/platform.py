"""The platform under test: a PostgreSQL of its own, and orchestrators and workers as real processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from geomill.embedded import Cluster
from geomill.store.connection import connect
from geomill.store.migrate import migrate

ROOT = Path(__file__).parents[2]
SKEWED = ROOT / "tests/chaos/skewed"
GEOMILL = str(Path(sys.executable).with_name("geomill"))
OPTIONS = {"orchestrator": [], "worker": ["--concurrency", "20"]}
FAST_TO_NOTICE = {"HEARTBEAT_INTERVAL_SEC": "1", "ORPHAN_THRESHOLD_SEC": "3", "GEOMILL_MAX_DELIVERIES": "1000"}
"""Frozen processes are noticed in seconds; and so many kills are no sign that a task is to blame."""


@dataclass
class ChaosPlatform:
    orchestrators: int = 2
    workers: int = 2
    settings: dict[str, str] = field(default_factory=lambda: dict(FAST_TO_NOTICE))
    processes: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)
    leaving: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> ChaosPlatform:
        self.folder = Path(tempfile.mkdtemp(prefix="gm-chaos-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self._cluster = Cluster(self.folder / "data", settings={"max_connections": "300"})
        self._cluster.start()
        self.url = self._cluster.url()
        asyncio.run(self._prepare())
        self._log = (self.folder / "roles.log").open("ab")
        for role, count in (("orchestrator", self.orchestrators), ("worker", self.workers)):
            self.processes[role] = [self._start(role) for _ in range(count)]
        return self

    def __exit__(self, *_: object) -> None:
        everyone = [*self.leaving, *(one for found in self.processes.values() for one in found)]
        for process in everyone:
            process.kill()
        for process in everyone:
            process.wait()
        self._log.close()
        self._cluster.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _prepare(self) -> None:
        async with await connect(self.url) as conn:
            await migrate(conn)
            await conn.execute("CREATE SCHEMA chaos")
            await conn.execute("CREATE TABLE chaos.effects (effect_key text PRIMARY KEY, runs integer NOT NULL)")

    def _start(self, role: str, skew: float = 0.0) -> subprocess.Popen[bytes]:
        environ = {
            **os.environ,
            **self.settings,
            "GEOMILL_DATABASE_URL": self.url,
            "GEOMILL_HANDLERS": "tests.chaos.handlers",
            "GEOMILL_WORKFLOWS": str(ROOT / "tests/chaos/workflows"),
            "PYTHONPATH": os.pathsep.join([*([str(SKEWED)] if skew else []), str(ROOT)]),
            "CHAOS_CLOCK_SKEW": str(skew),
        }
        command = [GEOMILL, role, *OPTIONS[role]]
        return subprocess.Popen(command, env=environ, cwd=ROOT, stdout=self._log, stderr=self._log)

    def replace(self, role: str, victim: subprocess.Popen[bytes], skew: float = 0.0) -> None:
        with self._lock:  # the faults and the supervisor may both have seen it die
            found = self.processes[role]
            if victim in found:
                found[found.index(victim)] = self._start(role, skew)

    def keep_alive(self) -> None:
        """A supervisor's part: whoever ended by itself is started again."""
        for role, found in self.processes.items():
            for process in [one for one in found if one.poll() is not None]:
                self.replace(role, process)

    def restart_postgres(self, mode: str, away_seconds: float = 0.0) -> None:
        self.stop_postgres(mode)
        time.sleep(away_seconds)
        self.start_postgres()

    def stop_postgres(self, mode: str) -> None:
        self._cluster.stop(mode)  # type: ignore[arg-type]

    def start_postgres(self) -> None:
        self._cluster.start()

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join((self.folder / "roles.log").read_text(errors="replace").splitlines()[-lines:])

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as conn:
            return conn.execute(query).fetchall()
