"""The troubles of a process's duties, for others to see.

A duty that fails every second must not write every second, and often it fails because the database is away. So the
process notes what happens in memory, and `tell` writes only when something is new.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from geomill.sql import queries
from geomill.store.pool import Connection

LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Trouble:
    error: str
    failed_at: str
    failing: bool


class Duties:
    """`failed` and `passed` after each run of a duty, `tell` whenever a connection is at hand."""

    def __init__(self, instance_id: str) -> None:
        self._instance_id = instance_id
        self._troubles: dict[str, Trouble] = {}
        self._untold = False

    def failed(self, duty: str, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}".strip()[:LONGEST_ERROR].replace("\x00", "")
        known = self._troubles.get(duty)
        if known is None or not known.failing or known.error != text:
            self._note(duty, Trouble(text, datetime.now(UTC).isoformat(timespec="seconds"), failing=True))

    def passed(self, duty: str) -> None:
        known = self._troubles.get(duty)
        if known and known.failing:
            self._note(duty, Trouble(known.error, known.failed_at, failing=False))

    async def tell(self, conn: Connection) -> bool:
        """Whether there was something to write."""
        if not self._untold:
            return False
        duties = json.dumps({duty: asdict(trouble) for duty, trouble in self._troubles.items()})
        await conn.execute(queries("duties").report, {"instance_id": self._instance_id, "duties": duties})
        self._untold = False
        return True

    def _note(self, duty: str, trouble: Trouble) -> None:
        self._troubles[duty] = trouble
        self._untold = True
