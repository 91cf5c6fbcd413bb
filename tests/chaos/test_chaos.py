"""The short chaos run. `script/chaos` runs the long one."""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.chaos.platform import ChaosPlatform
from tests.chaos.run import run

pytestmark = pytest.mark.slow
FAULTS = 6
LONGEST_SECONDS = 3.0
"""The longest time of one fault. Longer ones belong to `script/chaos`."""


@pytest.mark.parametrize("broker", ["postgres", "servicebus"])
def test_nothing_is_lost_and_nothing_happens_twice(broker: str) -> None:
    seed = int(os.environ.get("CHAOS_SEED", "1"))
    report = run(
        jobs=100, seed=seed, longest=LONGEST_SECONDS, faults=FAULTS, make_platform=partial(ChaosPlatform, broker=broker)
    )
    assert not report.violations, f"{report}\n{report.log}"
    assert report.count >= FAULTS, str(report)
