"""The aggregates that a fan_in node makes of its outputs."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.engine.aggregate import aggregate

OUTPUTS = [{"n": 1, "tiles": ["a", "b"]}, {"n": 2.5, "tiles": ["c"]}, {"n": 3, "tiles": []}]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("collect", {"results": OUTPUTS, "count": 3}),
        ("concat", {"results": [1, "a", "b", 2.5, "c", 3], "count": 6}),
        ("sum", {"total": 6.5, "count": 3}),
        ("first", {"result": OUTPUTS[0], "count": 3}),
        ("last", {"result": OUTPUTS[2], "count": 3}),
        ("count", {"count": 3}),
    ],
)
def test_each_kind(kind: Any, expected: dict[str, Any]) -> None:
    assert aggregate(kind, iter(OUTPUTS)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("collect", {"results": [], "count": 0}),
        ("concat", {"results": [], "count": 0}),
        ("sum", {"total": 0, "count": 0}),
        ("first", {"result": None, "count": 0}),
        ("last", {"result": None, "count": 0}),
        ("count", {"count": 0}),
        ("outcomes", {"results": [], "count": 0, "failed": 0}),
    ],
)
def test_each_kind_of_nothing(kind: Any, expected: dict[str, Any]) -> None:
    assert aggregate(kind, []) == expected


def test_concat_takes_values_that_are_not_mappings() -> None:
    assert aggregate("concat", [[1, 2], 3, {"a": [4, [5]]}])["results"] == [1, 2, 3, 4, [5]]


def test_sum_takes_numbers_only() -> None:
    outputs = [{"a": 1, "flag": True, "text": "7", "none": None, "list": [9]}, 2, True, "3", {"b": 0.5}]
    assert aggregate("sum", outputs) == {"total": 3.5, "count": 5}


def test_collect_keeps_the_order_and_what_it_is_given() -> None:
    assert aggregate("collect", [3, None, "a", 1])["results"] == [3, None, "a", 1]


def test_outcomes_count_those_that_failed() -> None:
    good = {"index": 0, "status": "completed", "output": {"n": 1}, "error": None}
    bad = {"index": 1, "status": "failed", "output": None, "error": "no luck"}
    assert aggregate("outcomes", [good, bad]) == {"results": [good, bad], "count": 2, "failed": 1}
