"""Patterns of inputs are matched in linear time, whatever their author wrote."""

from __future__ import annotations

import time

import pytest

from geomill.domain.engine.patterns import matches, pattern_fault


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [("^[a-z]+$", "abc", True), ("^[a-z]+$", "aBc", False), ("b", "abc", True), (r"^\d{4}$", "2026", True)],
)
def test_a_pattern_is_searched_for(pattern: str, value: str, expected: bool) -> None:
    assert matches(pattern, value) is expected


@pytest.mark.parametrize("pattern", ["(", "[", "(?=a)b", r"(a)\1", "a{1000000}", r"(\w{500}){500}"])
def test_what_cannot_be_matched_in_linear_time_is_no_pattern(pattern: str) -> None:
    assert pattern_fault(pattern)
    assert "validator" not in pattern_fault(pattern)


def test_an_expression_that_would_take_years() -> None:
    begun = time.process_time()
    assert pattern_fault("(a+)+$") == ""
    assert not matches("(a+)+$", "a" * 5000 + "b")
    assert time.process_time() - begun < 1
