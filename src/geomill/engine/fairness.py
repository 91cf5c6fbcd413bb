"""Fair claims: an orchestrator that owns more than its share leaves new submissions to the others for a moment.

After that moment it claims them anyway. So a peer that is alive but does nothing delays a job no longer than that.
The moment is short, because the number of all jobs is counted once a second: in a burst everybody seems to own more.
"""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE_SECONDS = 0.02
SLACK = 1.2
FEW = 10
"""With so few jobs an orchestrator is not overloaded."""


@dataclass
class TenantShare:
    peers: int = 1
    active: int = 0

    def update(self, peers: int, active: int) -> None:
        """Set the number of live orchestrators, including this one, and of the unfinished jobs of all of them."""
        self.peers, self.active = max(peers, 1), active

    def patience(self, owned: int) -> float:
        """Return how many seconds a submission must have waited before this orchestrator claims it."""
        if self.peers == 1 or owned <= FEW:
            return 0.0
        mean = max(self.active, owned) / self.peers
        return PATIENCE_SECONDS if owned > mean * SLACK else 0.0
