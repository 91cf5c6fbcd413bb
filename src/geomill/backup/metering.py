"""How far a backup or a restoration is, for whoever shows it."""

from __future__ import annotations

from typing import Protocol


class ProgressMeter(Protocol):
    def begin(self, title: str, total: int) -> None:
        """A phase of so many bytes, or about so many."""

    def advance(self, amount: int) -> None:
        """May be called from any thread."""


class Silent:
    def begin(self, title: str, total: int) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass


class TableShare:
    """The part of a phase that one table has. Text has another length than the table on its disk, so what was written
    counts up to the table's size, and the rest at the end."""

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
