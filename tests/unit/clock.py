"""A clock that only a test moves."""

from __future__ import annotations


class ManualClock:
    """Returns `now` when it is called, as `time.monotonic` returns its time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
