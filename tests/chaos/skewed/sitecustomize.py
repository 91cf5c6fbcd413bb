"""Sets the clock of a process wrong: Python reads this file before anything else when its folder is on the path."""

from __future__ import annotations

import os
import time

_SKEW = float(os.environ.get("CHAOS_CLOCK_SKEW", "0"))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _SKEW
time.time_ns = lambda: _time_ns() + int(_SKEW * 1_000_000_000)
