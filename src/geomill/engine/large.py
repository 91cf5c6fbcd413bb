"""Reads and writes large outputs of owned jobs outside the main loop, so that other jobs do not wait for the store.

A report stays in the inbox until its large output has been read. A fan-in whose aggregate needs the object store stays
`ready`; its answer arrives like a report. If this process dies meanwhile, the next owner begins again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.decision import Outcome
from geomill.domain.engine.large import LARGE, LargeOutput, folder_of, large_output
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.task import TaskReport
from geomill.domain.jsonvalue import to_json
from geomill.errors import GeomillError, UnavailableError
from geomill.storage import NO_STORAGE, Storage
from geomill.store.inbox import Arrival

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
NO_REPORT = 0
"""The sequence of an answer to a fan-in, which has no row in the inbox."""


class LargeOutputs:
    def __init__(self, storage: Storage, arrived: Callable[[], None]) -> None:
        """`arrived` is called when an output or an answer has arrived."""
        self._storage = storage
        self._arrived = arrived
        self._here: dict[LargeOutput, Any] = {}
        self._coming: dict[LargeOutput, asyncio.Task[None]] = {}
        self._answers: dict[tuple[str, str, int], Arrival] = {}
        self._asked: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    def ready(
        self, arrivals: Iterable[Arrival], only: Collection[str] | None = None, idle: Collection[str] = ()
    ) -> list[Arrival]:
        """Return the reports that can be evaluated now, with their outputs, and the answers that have arrived. With
        `only`, answers for other jobs are left out; those for `idle` jobs always are. Starts to read the missing
        outputs."""
        keys = [key for key in self._answers if key[0] not in idle and (only is None or key[0] in only)]
        answers = [self._answers.pop(key) for key in keys]
        return [filled for arrival in arrivals if (filled := self._filled(arrival))] + answers

    def put_back(self, arrivals: Iterable[Arrival]) -> None:
        """Keep answers that were ready but not taken. Reports are still in the inbox."""
        for arrival in arrivals:
            if arrival.sequence == NO_REPORT:
                outcome = arrival.outcomes[0]
                self._answers[arrival.job_id, outcome.node_id, outcome.attempt] = arrival

    def forget(self, job_ids: Iterable[str]) -> None:
        """Drop the outputs that were read for jobs of which somebody else is the owner now."""
        folders = tuple(folder_of(job_id) for job_id in job_ids)
        self._here = {large: output for large, output in self._here.items() if not large.path.startswith(folders)}

    async def fill(self, rows: Sequence[NodeState]) -> list[NodeState]:
        """Return the rows with their large outputs read from the store. Raises `UnavailableError` while the store is
        unavailable."""
        return [await self._fill(row) for row in rows]

    async def read(self, large: LargeOutput) -> Any:
        return large.value(await self._storage.read(large.name))

    def holds(self, output: Any) -> bool:
        """Whether the output may be stored in a row."""
        return self._storage is NO_STORAGE or len(to_json(output)) <= LARGE

    def answer(self, arrival: Arrival, answering: Callable[[], Awaitable[Any]]) -> None:
        """Compute the output of a fan-in in the background and store it if it is large. It then arrives as `arrival`,
        with the output."""
        outcome = arrival.outcomes[0]
        question = (arrival.job_id, outcome.node_id, outcome.attempt)
        if question not in self._asked and question not in self._answers:
            self._asked[question] = asyncio.create_task(self._answer(question, arrival, answering))

    async def _answer(
        self, question: tuple[str, str, int], arrival: Arrival, answering: Callable[[], Awaitable[Any]]
    ) -> None:
        outcome = arrival.outcomes[0]
        try:
            output, stored = await self._patiently(lambda: self._computed(question, answering))
        except Exception as error:  # noqa: BLE001  without an answer, the job would wait forever
            self._answers[question] = replace(arrival, outcomes=[_lost(outcome, _known(error))])
        else:
            self._answers[question] = replace(arrival, outcomes=[replace(outcome, output=output)], stored=stored)
        del self._asked[question]
        self._arrived()

    async def _computed(
        self, question: tuple[str, str, int], answering: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, Any]:
        """Return the output and, if it is large, its reference."""
        output = await answering()
        text = to_json(output)
        if len(text) <= LARGE or self._storage is NO_STORAGE:
            return output, None
        content = text.encode()
        large = LargeOutput.of(*question, content)
        await self._storage.put_bytes(large.name, content)
        return output, large.output()

    def _filled(self, arrival: Arrival) -> Arrival | None:
        large = large_output(arrival.outcomes[0].output) if len(arrival.outcomes) == 1 else None
        if large is None:
            return arrival
        if large not in self._here:
            if large not in self._coming:
                self._coming[large] = asyncio.create_task(self._bring(large))
            return None
        output = self._here.pop(large)
        if isinstance(output, GeomillError):
            return replace(arrival, outcomes=[_lost(arrival.outcomes[0], output)])
        return replace(arrival, outcomes=[replace(arrival.outcomes[0], output=output)], stored=large.output())

    async def _bring(self, large: LargeOutput) -> None:
        try:
            self._here[large] = await self._patiently(lambda: self.read(large))
        except Exception as error:  # noqa: BLE001  without its output, the report would wait forever
            self._here[large] = _known(error)
        del self._coming[large]
        self._arrived()

    async def _patiently(self, work: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await work()
            except UnavailableError as error:
                log.warning("a large output waits for its store: %s", error, extra={"action": "large_output"})
                await asyncio.sleep(AGAIN_SECONDS)

    async def _fill(self, row: NodeState) -> NodeState:
        large = large_output(row.output)
        return row if large is None else row.model_copy(update={"output": await self.read(large)})


def _known(error: Exception) -> GeomillError:
    """The error, or a reference to the log for one that is not ours: its text may show more than a partner may see."""
    if isinstance(error, GeomillError):
        return error
    reference = new_reference()
    log.error("a large output cannot be used, reference %s", reference, exc_info=error)
    return GeomillError(f"the output cannot be used: the log has more under the reference {reference}")


def _lost(outcome: Outcome, error: GeomillError) -> Outcome:
    return replace(outcome, report=TaskReport.FAILED, output=None, error=str(error), error_code="lost_output")
