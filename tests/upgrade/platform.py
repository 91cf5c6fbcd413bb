"""A platform of two releases on one database: process 0 of each role is of the previous one, the others are ours."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.platform import ChaosPlatform, Process
from tests.chaos.release import CURRENT, Release

FORMER, NEWER = "former", "newer"
MAKE_DATABASE = (
    "import pathlib, sys; from tests.prepared import make_migrated; make_migrated(pathlib.Path(sys.argv[1]))"
)


@dataclass
class MixedPlatform(ChaosPlatform):
    orchestrators: int = 1
    workers: int = 1
    gateways: int = 1
    former: Release = field(default=CURRENT)
    upgraded: set[tuple[str, int]] = field(default_factory=set)
    """Processes that were of the previous release and are ours now."""
    instances: dict[str, str] = field(default_factory=dict)
    """Which release each process is of, by its instance id."""

    def release(self, role: str, number: int) -> Release:
        return self.former if number == 0 and (role, number) not in self.upgraded else CURRENT

    def _open_disks(self, stack: ExitStack) -> None:
        self.missing["disk"] = "an upgrade needs none"

    def _make_database(self, data: Path) -> None:
        command = [self.former.program("python"), "-c", MAKE_DATABASE, str(data)]
        subprocess.run(command, cwd=self.former.root, check=True)
        (data / "postgres" / "port").unlink()

    def migrate(self) -> str:
        """Migrate as a user does, with our release. Returns what the command says."""
        environ = {**os.environ, "GEOMILL_DATABASE_URL": self.url}
        command = [CURRENT.program("geomill"), "db", "migrate"]
        done = subprocess.run(command, env=environ, cwd=CURRENT.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def join(self) -> None:
        """Start a process of our release beside each one of the previous."""
        for role, processes in self.processes.items():
            if processes:
                processes.append(self._start(role, len(processes)))
        self.orchestrators, self.workers, self.gateways = 2, 2, 2
        self.wait_for_roles()

    def upgrade(self, role: str) -> None:
        """Replace the process of the previous release, as a rolling update does: ours starts when it has ended."""
        former = self.processes[role][0]
        self.upgraded.add((role, 0))
        former.terminate()
        former.wait()
        self.replace(role, former)

    def note_instances(self) -> None:
        """Note which release each living process is of. What has ended is still known."""
        names: dict[int, str] = {}
        for role, processes in self.processes.items():
            for number, process in enumerate(processes):
                names[process.pid] = FORMER if self.release(role, number) is self.former else NEWER
        rows = self.rows("SELECT instance_id, pid FROM dagapp.dag_instances")
        self.instances |= {str(instance_id): names[pid] for instance_id, pid in rows if pid in names}

    @contextmanager
    def alone(self, role: str, number: int) -> Iterator[None]:
        """Freeze the other processes of the role for a moment, so that this one gets what is sent."""
        others = [process for other, process in enumerate(self.processes[role]) if other != number]
        for process in others:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in others:
                process.send_signal(signal.SIGCONT)

    def kill(self, role: str, number: int) -> Process:
        victim = self.processes[role][number]
        victim.kill()
        victim.wait()
        return victim
