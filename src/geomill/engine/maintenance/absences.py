"""Says which absent processes are dead.

A free lock alone proves nothing: after a restart of PostgreSQL all locks are free until everybody has reconnected, and
a process may lose its listening session and nothing else. So absence is proved by time as well. A lock must stay free
for a moment without a heartbeat. And nobody is judged soon after the server's return or a gap in one's own looks:
then it was the server that was away, or this process itself.

What it does badly: an orchestrator that starts in the first seconds after a recovery that took longer than
`SETTLE_SECONDS` knows nothing of that outage. It may take over what living processes hold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from geomill.store.instances import ABSENT_SECONDS, SETTLE_SECONDS, Absent

GAP_SECONDS = 5.0
"""Looks are a second apart. After so long without one, nobody is judged before the others had time to come back."""


@dataclass
class Absences:
    _looked: float | None = None
    _patient_until: float = float("-inf")
    _since: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    """Id → its last heartbeat, and when it was first seen absent since then."""

    def looked(self) -> bool:
        """After each look. Whether this process has looked for long enough without a gap."""
        now = time.monotonic()
        if self._looked is not None and now - self._looked > GAP_SECONDS:
            self._patient_until = now + SETTLE_SECONDS
        self._looked = now
        return now >= self._patient_until

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
