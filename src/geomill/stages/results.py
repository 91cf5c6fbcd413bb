"""Results of a stage's tasks as a lazy sequence for the controller.

Only one page of results is in memory at a time, so a stage may have a hundred thousand tasks. Code that needs only
their number reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from geomill.sdk import HandlerError
from geomill.stages.controller import TaskResult

ReadPage = Callable[[int], Sequence[TaskResult]]
"""Returns the results from a position on, as many as fit into memory."""


class TaskResults(Sequence[TaskResult]):
    def __init__(self, total: int, read: ReadPage) -> None:
        self._total = total
        self._read = read
        self._first = 0
        self._page: Sequence[TaskResult] = ()

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, place: int) -> TaskResult: ...
    @overload
    def __getitem__(self, place: slice) -> list[TaskResult]: ...
    def __getitem__(self, place: int | slice) -> TaskResult | list[TaskResult]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self._total))]
        position = place + self._total if place < 0 else place
        if not 0 <= position < self._total:
            raise IndexError(f"there is no result {place}: the stage has {self._total} tasks")
        self._turn_to(position)
        return self._page[position - self._first]

    def __iter__(self) -> Iterator[TaskResult]:
        place = 0
        while place < self._total:
            self._turn_to(place)
            page, begin = self._page, self._first
            yield from page[place - begin :]
            place = begin + len(page)

    def _turn_to(self, place: int) -> None:
        if self._first <= place < self._first + len(self._page):
            return
        self._first, self._page = place, ()
        self._page = self._read(place)
        if not self._page:
            raise HandlerError(f"the result of task {place} no longer exists", retryable=False, code="invalid_stage")
