"""The clock that a worker and its children share."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds that also pass while the machine sleeps. The same in every process of the machine."""
    return time.clock_gettime(_CLOCK)
