"""Whom a round calls: workers with enough free slots, or all."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from geomill.engine.calls import calls
from geomill.store.signals import Call

ALL = Call("q:light")


def test_the_worker_that_reported_is_called_alone() -> None:
    assert calls({"light": 1}, Counter(a=1)) == [Call("w:a", "d:light")]


def test_without_reports_all_are_called() -> None:
    assert calls({"light": 1}, Counter()) == [ALL]


def test_more_tasks_than_freed_slots_call_all() -> None:
    assert calls({"light": 3}, Counter(a=1, b=1)) == [ALL]


def test_no_more_workers_are_called_than_the_tasks_need() -> None:
    assert calls({"light": 4}, Counter(a=3, b=9, c=2)) == [Call("w:b", "d:light")]
    assert calls({"light": 11}, Counter(a=3, b=9, c=2)) == [Call("w:b", "d:light"), Call("w:a", "d:light")]


def test_each_slot_is_used_once() -> None:
    assert calls({"heavy": 1, "light": 1}, Counter(a=1, b=1)) == [Call("w:a", "d:heavy"), Call("w:b", "d:light")]


def test_nothing_to_do_calls_nobody() -> None:
    assert calls({}, Counter(a=1)) == []


@given(
    st.dictionaries(st.sampled_from(["light", "heavy"]), st.integers(1, 50)),
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 20)),
)
def test_every_queue_is_called_for_all_its_tasks(tasks: dict[str, int], free: dict[str, int]) -> None:
    chosen = calls(tasks, Counter(free))
    for queue_name in tasks:
        directly = [call for call in chosen if call.payload == f"d:{queue_name}"]
        assert directly or Call(f"q:{queue_name}") in chosen
    if sum(free.values()) >= sum(tasks.values()):
        assert sum(free[call.channel.removeprefix("w:")] for call in set(chosen)) >= max(tasks.values(), default=0)
