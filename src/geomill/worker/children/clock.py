"""The clock that a worker and its children share."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Return seconds that also pass while the machine sleeps. They are the same in every process of the machine."""
    return time.clock_gettime(_CLOCK)
