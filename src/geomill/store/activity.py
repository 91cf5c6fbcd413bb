"""The work of this process since its start. Its heartbeat writes it, so that operators see how work is divided."""

from __future__ import annotations

import time
from collections import Counter

from geomill.domain.jsonvalue import to_json


class Activity:
    """Counts in memory, all from the start of the process on."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._looked: float | None = None

    def count(self, name: str, times: int = 1) -> None:
        if times:
            self._counts[name] += times

    def looked(self) -> None:
        """Note that the process has just looked for work."""
        self._looked = time.monotonic()

    def parameters(self) -> dict[str, str | float | None]:
        """Return the counts, and how long ago the last look was. The database turns that into a time."""
        ago = None if self._looked is None else time.monotonic() - self._looked
        return {"counts": to_json(self._counts), "look_seconds": ago}
