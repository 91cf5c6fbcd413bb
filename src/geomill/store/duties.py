"""The failures of a process's duties, stored where other processes read them.

A duty that fails every second must not write every second, and often it fails because the database is unreachable. So
the process keeps failures in memory, and `tell` writes them only if one is new.
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
    """Call `failed` or `passed` after each run of a duty, and `tell` whenever a connection is free."""

    def __init__(self, instance_id: str) -> None:
        self._instance_id = instance_id
        self._troubles: dict[str, Trouble] = {}
        self._untold = False

    def failed(self, duty: str, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}".strip()[:LONGEST_ERROR].replace("\x00", "")
        before = self._troubles.get(duty)
        if before is None or not before.failing or before.error != text:
            self._note(duty, Trouble(text, datetime.now(UTC).isoformat(timespec="seconds"), failing=True))

    def passed(self, duty: str) -> None:
        before = self._troubles.get(duty)
        if before and before.failing:
            self._note(duty, Trouble(before.error, before.failed_at, failing=False))

    async def tell(self, conn: Connection) -> bool:
        """Write the failures if one is new. Returns whether that was so."""
        if not self._untold:
            return False
        duties = json.dumps({duty: asdict(trouble) for duty, trouble in self._troubles.items()})
        await conn.execute(queries("duties").report, {"instance_id": self._instance_id, "duties": duties})
        self._untold = False
        return True

    def _note(self, duty: str, trouble: Trouble) -> None:
        self._troubles[duty] = trouble
        self._untold = True
