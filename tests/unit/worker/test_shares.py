from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.cli.roles import weighted
from geomill.errors import InputError
from geomill.worker.shares import Shares


def test_slots_are_divided_by_weight() -> None:
    assert Shares(("heavy", "light"), {"heavy": 3}).of(8) == {"heavy": 6, "light": 2}


def test_one_slot_at_a_time_takes_turns_and_nobody_is_forgotten() -> None:
    shares = Shares(("heavy", "light"), {"heavy": 3, "light": 1})
    turns = [next(name for name, share in shares.of(1).items() if share) for _ in range(8)]
    assert turns == ["heavy", "heavy", "light", "heavy"] * 2


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.lists(st.integers(0, 300), min_size=1, max_size=20),
)
def test_shares_add_up_and_follow_the_weights(weights: list[int], frees: list[int]) -> None:
    names = [f"q{number}" for number in range(len(weights))]
    shares = Shares(names, dict(zip(names, weights, strict=True)))
    slots_given: Counter[str] = Counter()
    for free in frees:
        allotted = shares.of(free)
        assert sum(allotted.values()) == free
        assert min(allotted.values()) >= 0
        slots_given.update(allotted)
    for name, weight in zip(names, weights, strict=True):
        assert abs(slots_given[name] - sum(frees) * weight / sum(weights)) <= len(names)


def test_a_weight_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Shares(("a",), {"a": 0})


def test_queues_on_the_command_line() -> None:
    assert weighted("container-tasks") == ("container-tasks", 1)
    assert weighted("container-tasks=3") == ("container-tasks", 3)


@pytest.mark.parametrize("text", ["", "=3", "a=", "a=0", "a=-1", "a=x", "a=1.5"])
def test_what_is_no_weight(text: str) -> None:
    with pytest.raises(InputError, match="not NAME or NAME=WEIGHT"):
        weighted(text)


def test_an_empty_queue_is_asked_again_once_it_has_called() -> None:
    shares = Shares(("a", "b", "c"), {})
    shares.found_empty({"c"})
    assert shares.of(4) == {"a": 2, "b": 2}
    shares.found_empty({"a", "b"})
    assert not shares.hopeful
    assert shares.of(4) == {}
    shares.called(["c"])
    assert shares.of(4) == {"c": 4}
    shares.called()
    assert set(shares.of(3)) == {"a", "b", "c"}


def test_a_limited_queue_gets_no_more_and_the_others_what_is_left_to_them() -> None:
    shares = Shares(["heavy", "light"], {})
    assert shares.of(16, {"heavy": 2}) == {"heavy": 2, "light": 8}
    assert shares.of(16, {"heavy": 0}) == {"light": 16}
    assert Shares(["heavy"], {}).of(16, {"heavy": 0}) == {}
