"""The progress of a backup or a restoration."""

from __future__ import annotations

from typing import Protocol


class ProgressMeter(Protocol):
    def begin(self, title: str, total: int) -> None:
        """Begin a phase of about `total` bytes."""

    def advance(self, amount: int) -> None:
        """Count bytes that were processed. May be called from any thread."""


class Silent:
    def begin(self, title: str, total: int) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass


class TableShare:
    """The share of one table in a phase. Its text has another length than the table on disk, so written bytes count up
    to the size of the table, and the rest is added at the end."""

    def __init__(self, meter: ProgressMeter, total: int) -> None:
        self._meter = meter
        self._left = total

    def advance(self, amount: int) -> None:
        counted = min(amount, self._left)
        self._left -= counted
        if counted:
            self._meter.advance(counted)

    def end(self) -> None:
        self.advance(self._left)
