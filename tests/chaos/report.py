"""The report of a storm: a table of faults with their recoveries, and the counts that must be zero."""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.chaos.ledger import Repeats
from tests.chaos.storm import Hit
from tests.chaos.table import seconds, table

KINDS = ("lost", "doubled", "wrong verdict", "asset")


@dataclass
class Report:
    jobs: int
    assets: int
    seconds: float
    faults: dict[str, list[float | None]]
    """How long after each fault the next job ended; None: never."""
    violations: list[str]
    repeats: Repeats
    taken_over: int
    stale: int
    ended_by_themselves: int
    retried_requests: int
    answers: dict[str, int]
    skipped: dict[str, str]
    verdicts: dict[str, int]
    log: str = field(default="", repr=False)

    @property
    def count(self) -> int:
        return sum(map(len, self.faults.values()))

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "log"}

    def __str__(self) -> str:
        lines = [f"{self.jobs} jobs and {self.assets} assets in {self.seconds:.0f} s, {self.count} faults", ""]
        lines += [table(("fault", "count", "median", "worst"), [_row(*item) for item in sorted(self.faults.items())])]
        lines += ["", f"  verdicts: {self.verdicts}; answers of the gateways: {self.answers}"]
        lines += [f"  skipped, {name}: {reason}" for name, reason in self.skipped.items()]
        lines += [
            f"  tasks begun again: {self.repeats.begun_again}, ended again: {self.repeats.ended_again}",
            f"  attempts at one task at once: {self.repeats.at_once}, stale results: {self.stale}",
            f"  jobs taken over: {self.taken_over}, processes that ended by themselves: {self.ended_by_themselves}",
            f"  requests for assets run again by hand: {self.retried_requests}",
            "  " + ", ".join(f"{self._count(kind)} {kind}" for kind in KINDS),
        ]
        lines += [f"  VIOLATED: {violation}" for violation in self.violations] or ["  every invariant holds"]
        return "\n".join(lines)

    def _count(self, kind: str) -> int:
        return sum(violation.startswith(kind) for violation in self.violations)


def _row(title: str, recoveries: Sequence[float | None]) -> list[str]:
    recovered = [recovery for recovery in recoveries if recovery is not None]
    worst = None if len(recovered) < len(recoveries) else max(recovered, default=None)
    return [title, str(len(recoveries)), seconds(statistics.median(recovered) if recovered else None), seconds(worst)]


def recoveries(hits: Sequence[Hit], ends: Mapping[str, float]) -> dict[str, list[float | None]]:
    """From the end of each fault, or its beginning if it lasts, until the next job ended."""
    moments = sorted(ends.values())
    by_title: dict[str, list[float | None]] = defaultdict(list)
    for hit in hits:
        since = hit.begun if hit.fault.lasting else hit.over
        following = bisect.bisect_right(moments, since)
        by_title[hit.fault.title].append(moments[following] - since if following < len(moments) else None)
    return dict(by_title)
