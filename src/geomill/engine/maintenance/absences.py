"""Says which absent processes are dead.

A free lock alone proves nothing: after a restart of PostgreSQL all locks are free until everybody has reconnected, and
a process may lose its listening session and nothing else. So absence is proved by time as well. A lock must stay free
for a moment without a heartbeat. And nobody is judged soon after the server's return, nor by an orchestrator that could
not beat itself: then it was the server that was away or refused to write, or this process that was frozen.

What it does badly: an orchestrator that starts in the first seconds after a recovery that took longer than
`SETTLE_SECONDS` knows nothing of that outage. It may take over what living processes hold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from geomill.store.instances import ABSENT_SECONDS, BEAT_SECONDS, SETTLE_SECONDS, Absent

LATE_SECONDS = 4.0
"""Whose own heartbeat is so late judges nobody before the others had time to come back."""


@dataclass
class Absences:
    beat_seconds: float = BEAT_SECONDS
    _beaten: float | None = None
    _patient_until: float = float("-inf")
    _since: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    """Id → its last heartbeat, and when it was first seen absent since then."""

    def beaten(self) -> None:
        """The database has noted a heartbeat of this process."""
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
        """Those who are absent for long enough, of all who are absent now."""
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
