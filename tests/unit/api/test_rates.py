"""Buckets: what is allowed over time and at once, with bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from geomill.api.rates import Buckets
from tests.unit.clock import ManualClock


def test_a_burst_then_the_rate() -> None:
    clock = ManualClock()
    buckets = Buckets(2.0, 3, clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("b") == 0.0
    assert buckets.wait("a") == 0.5
    clock.now += 0.5
    assert buckets.wait("a") == 0.0
    assert buckets.take("a") == 0.0
    assert buckets.take("a") == 0.5


def test_memory_is_bounded_and_the_one_in_use_stays() -> None:
    buckets = Buckets(0.001, 5, most=10, clock=ManualClock())
    for number in range(4):
        assert buckets.take("busy") == 0.0
        for other in range(8):
            buckets.take(f"{number}-{other}")
    assert len(buckets._levels) <= 10
    assert buckets.take("busy") == 0.0
    assert buckets.take("busy") > 0


@given(st.lists(st.floats(0, 2), max_size=200), st.floats(0.5, 20), st.integers(1, 20))
def test_never_more_than_burst_and_rate_allow(pauses: list[float], rate: float, burst: int) -> None:
    clock = ManualClock()
    buckets = Buckets(rate, burst, clock=clock)
    begun, allowed = clock.now, 0
    for pause in pauses:
        clock.now += pause
        waiting = buckets.take("a")
        allowed += waiting == 0
        assert waiting <= 1 / rate + 1e-6
    assert allowed <= burst + (clock.now - begun) * rate + 1e-6
