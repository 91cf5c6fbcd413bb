"""Fair taking: an orchestrator that owns more than its share leaves young submissions to the others.

It does not refuse them: after a moment it takes them anyway, so that a peer which lives but does nothing delays a job
by that moment and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE_SECONDS = 0.25
SLACK = 1.2
FEW = 10
"""With so few jobs nobody is overloaded."""


@dataclass
class TenantShare:
    peers: int = 1
    active: int = 0

    def update(self, peers: int, active: int) -> None:
        """Live orchestrators, ourselves included, and unfinished jobs of all of them."""
        self.peers, self.active = max(peers, 1), active

    def patience(self, owned: int) -> float:
        """How long a submission must have waited before we take it."""
        if self.peers == 1 or owned <= FEW:
            return 0.0
        mean = max(self.active, owned) / self.peers
        return PATIENCE_SECONDS if owned > mean * SLACK else 0.0
