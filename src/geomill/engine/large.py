"""Reads large outputs from the object store for the jobs that this process owns, beside its loop.

A report whose output is not here yet stays in the inbox, and is taken once it is. So a slow store delays the jobs that
need it, and no other.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from geomill.domain.large import LargeOutput, large_output
from geomill.domain.node import NodeState
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.task import Report
from geomill.errors import GeomillError, UnavailableError
from geomill.storage import Storage
from geomill.store.inbox import Arrival

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0


class LargeOutputs:
    def __init__(self, storage: Storage, arrived: Callable[[], None]) -> None:
        """`arrived` is called when something has come that was waited for."""
        self._storage = storage
        self._arrived = arrived
        self._here: dict[LargeOutput, Any] = {}
        self._coming: dict[LargeOutput, asyncio.Task[None]] = {}

    def ready(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Those that can be evaluated now, with their outputs. The others are on their way."""
        return [one for arrival in arrivals if (one := self._filled(arrival))]

    async def fill(self, rows: Sequence[NodeState]) -> list[NodeState]:
        """The nodes of a job with their outputs. Raises `UnavailableError` while the store is away."""
        return [await self._fill(row) for row in rows]

    def _filled(self, arrival: Arrival) -> Arrival | None:
        large = large_output(arrival.outcomes[0].output) if len(arrival.outcomes) == 1 else None
        if large is None:
            return arrival
        if large not in self._here:
            if large not in self._coming:
                self._coming[large] = asyncio.create_task(self._bring(large))
            return None
        found = self._here.pop(large)
        if isinstance(found, GeomillError):
            lost = replace(
                arrival.outcomes[0], report=Report.FAILED, output=None, error=str(found), error_code="lost_output"
            )
            return replace(arrival, outcomes=[lost])
        return replace(arrival, outcomes=[replace(arrival.outcomes[0], output=found)], stored=large.output())

    async def _bring(self, large: LargeOutput) -> None:
        while True:
            try:
                self._here[large] = await self._read(large)
                break
            except UnavailableError as error:
                log.warning("a large output waits for its store: %s", error, extra={"action": "large_output"})
                await asyncio.sleep(AGAIN_SECONDS)
            except GeomillError as error:
                self._here[large] = error
                break
        del self._coming[large]
        self._arrived()

    async def _fill(self, row: NodeState) -> NodeState:
        large = large_output(row.output)
        return row if large is None else row.model_copy(update={"output": await self._read(large)})

    async def _read(self, large: LargeOutput) -> Any:
        content = await self._storage.read(ObjectName(Zone.SILVER, large.container, large.path))
        if not large.stands_for(content):
            raise GeomillError(f"{large.path} is not what was stored there", remedy="retry the job")
        return json.loads(content)
