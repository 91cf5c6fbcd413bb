"""Decides which absent processes are dead.

A free lock alone proves nothing. After a restart of PostgreSQL all locks are free until all processes have reconnected,
and a process may lose only its listening session. So the lock must also stay free for a moment without a heartbeat. And
no process is judged soon after the server's return, or by an orchestrator whose own heartbeat is late: then the server
was unavailable or refused to write, or this process was frozen.

Weakness: an orchestrator that starts in the first seconds after a recovery that took longer than `SETTLE_SECONDS` does
not know of that outage. It may take over jobs of living processes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from geomill.store.instances import ABSENT_SECONDS, BEAT_SECONDS, SETTLE_SECONDS, Absent

LATE_SECONDS = 4.0
"""An orchestrator whose own heartbeat is later than this waits for the others to come back before it judges them."""


@dataclass
class Absences:
    beat_seconds: float = BEAT_SECONDS
    _beaten: float | None = None
    _patient_until: float = float("-inf")
    _since: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    """Instance id → its last heartbeat, and when it was first absent after that."""

    def beaten(self) -> None:
        """Record that the database has stored a heartbeat of this process."""
        if self._is_late:
            self._patient_until = time.monotonic() + SETTLE_SECONDS
        self._beaten = time.monotonic()

    @property
    def may_judge(self) -> bool:
        return not self._is_late and time.monotonic() >= self._patient_until

    @property
    def _is_late(self) -> bool:
        return self._beaten is not None and time.monotonic() - self._beaten > self.beat_seconds + LATE_SECONDS

    def dead(self, absent: Sequence[Absent]) -> list[Absent]:
        """Return the processes that have been absent long enough, given all that are absent now."""
        now = time.monotonic()
        self._since = {process.instance_id: self._first_seen(process, now) for process in absent}
        return [
            process
            for process in absent
            if process.silent or now - self._since[process.instance_id][1] >= ABSENT_SECONDS
        ]

    def _first_seen(self, process: Absent, now: float) -> tuple[datetime, float]:
        heartbeat_at, since = self._since.get(process.instance_id, (None, now))
        return process.heartbeat_at, since if heartbeat_at == process.heartbeat_at else now
