from __future__ import annotations

from geomill.datasets.patience import patience


def test_it_follows_the_size_and_ends_before_the_timeout() -> None:
    assert patience(0, 3600) == 300
    assert patience(1_000_000_000, 3600) == 800
    assert patience(10**15, 3600) == 3540
    assert patience(10**15, 1800) == 1740
