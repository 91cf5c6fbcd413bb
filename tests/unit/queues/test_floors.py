"""When a consumer begins at its floors, and where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.queues.floors import LAG_SECONDS, LONGEST_SECONDS, LOOKS, MOST_LINES, SHARE, Floor, Floors
from geomill.queues.turns import TenantLine
from tests.unit.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def floors(clock: ManualClock) -> Floors:
    return Floors(clock)


def look(floors: Floors, seconds: float, times: int = LOOKS, rows: int = 0) -> None:
    for _ in range(times):
        floors.looked(["q"], seconds, rows)


def test_cheap_looks_are_always_from_the_heads(floors: Floors) -> None:
    look(floors, 0.0004, 100)
    assert not floors.bounded("q")
    assert not floors.bounded("another")


def test_a_distant_server_is_not_dear(floors: Floors) -> None:
    look(floors, 0.050, 100)
    assert not floors.bounded("q")


def test_messages_that_were_received_account_for_their_time(floors: Floors) -> None:
    look(floors, 0.0005)
    look(floors, 0.008, rows=100)
    assert not floors.bounded("q")


def test_one_slow_look_is_chance_and_several_are_not(floors: Floors) -> None:
    look(floors, 0.0005)
    look(floors, 0.040, LOOKS - 1)
    assert not floors.bounded("q")
    look(floors, 0.040, 1)
    assert floors.bounded("q")
    assert floors.dear("q")


def test_a_dear_look_is_followed_by_a_time_without_one(floors: Floors, clock: ManualClock) -> None:
    look(floors, 0.0005)
    look(floors, 0.0405)
    clock.now += SHARE * 0.04 - 0.01
    assert floors.bounded("q")
    clock.now += 0.02
    assert not floors.bounded("q")


def test_however_dear_everything_is_seen_within_seconds(floors: Floors, clock: ManualClock) -> None:
    look(floors, 0.0005)
    look(floors, 60.0)
    clock.now += LONGEST_SECONDS
    assert not floors.bounded("q")


def test_looks_that_are_cheap_again_are_made_again(floors: Floors, clock: ManualClock) -> None:
    look(floors, 0.0005)
    look(floors, 0.1)
    clock.now += LONGEST_SECONDS
    look(floors, 0.0005, 1)
    assert not floors.bounded("q")


def test_a_line_is_known_once_something_was_received_from_it(floors: Floors, clock: ManualClock) -> None:
    floors.reached([("q", 0, "ada", 7), ("q", 0, "bob", 9), ("r", 0, "ada", 8)])
    assert floors.lines(["q"]) == {TenantLine("q", 0, "ada"): 0, TenantLine("q", 0, "bob"): 0}


def test_lines_are_forgotten_when_there_are_too_many(floors: Floors) -> None:
    floors.reached([("q", 0, "first", 1)])
    floors.reached([("q", 0, f"t{number}", number) for number in range(MOST_LINES)])
    assert len(floors.lines(["q"])) == MOST_LINES
    assert TenantLine("q", 0, "first") not in floors.lines(["q"])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1000)), max_size=50))
def test_a_floor_is_something_that_was_reached_a_while_ago_and_never_falls(steps: list[tuple[float, int]]) -> None:
    floor, now, before = Floor(), 0.0, 0
    history: list[tuple[float, int]] = [(0.0, 0)]
    for seconds, sequence in steps:
        now += seconds
        floor.reach(sequence, now)
        history.append((now, sequence))
        assert floor.sequence >= before
        long_ago = [reached for at, reached in history if at <= now - LAG_SECONDS]
        assert floor.sequence <= max(long_ago, default=0)
        before = floor.sequence
