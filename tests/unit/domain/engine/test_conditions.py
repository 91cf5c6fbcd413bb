"""The conditions of a conditional node's branches."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geomill.domain.engine.conditions import LONGEST_MATCHED, parse_condition
from geomill.errors import ExpressionError


@pytest.mark.parametrize(
    ("condition", "true_of", "false_of"),
    [
        ("< 100", [99, 99.9, -1], [100, 101]),
        ("<= 100", [100, 99.5], [100.5]),
        ("> 100", [101, 100.1], [100]),
        (">= 100", [100, 1e9], [99]),
        ("<100", [1], [100]),
        ("  <  -1.5  ", [-2], [-1]),
        ("< 1e3", [999], [1000]),
        ("< 'b'", ["a"], ["b", "c"]),
        (">= b", ["b", "c"], ["a"]),
        ("== 1", [1, 1.0], [2, True, "1", None, [1]]),
        ("== 'x'", ["x"], ["X", "", None, 1]),
        ('== "x"', ["x"], ["y"]),
        ("== x", ["x"], ["'x'"]),
        ("== a/b-c.d:e", ["a/b-c.d:e"], ["a"]),
        ("== ''", [""], [None, 0, False]),
        ("== true", [True], [1, "true", False]),
        ("== TRUE", [True], ["TRUE"]),
        ("== 'true'", ["true"], [True]),
        ("== null", [None], [0, "", False, "null"]),
        ("== [1, 'a']", [[1, "a"]], [["a", 1], [], None]),
        ("== {'a': 1}", [{"a": 1}], [{}, None]),
        ("!= 1", [2, True, "1", None], [1, 1.0]),
        ("!= 'x'", ["y", None], ["x"]),
        ("!=null", [0], [None]),
        ("is true", [True], [1, False]),
        ("is false", [False], [0, None, True]),
        ("is none", [None], [0]),
        ("is 'x'", ["x"], ["y"]),
        ("is not null", [0, ""], [None]),
        ("is  not true", [False, 1], [True]),
        ("is notable", ["notable"], ["able"]),
        ("in ['a', 'b']", ["a", "b"], ["c", "", None, ["a"]]),
        ("in[1, 2]", [1, 2.0], [True, "1"]),
        ("in ('a', 'b')", ["a"], ["c"]),
        ("in {1, 2}", [2], [3]),
        ("in [True]", [True], [1]),
        ("in []", [], [1, None]),
        ("not in ['a']", ["b", None], ["a"]),
        ("not  in [1]", [True, 2], [1]),
        ("contains 'b'", ["abc", ["a", "b"], {"b": 1}], ["ac", ["ab"], {"a": "b"}, ""]),
        ("contains 1", [[1]], [[True], [], "1", {"1": 1}]),
        ("contains null", [[None]], [[], "null", {}]),
        ("contains [1]", [[[1]]], [[1], {"a": 1}, "[1]"]),
        ("matches '^[0-9]+$'", ["12"], ["a1", ""]),
        (r"matches '^\d{2}\.tif$'", ["12.tif"], ["12xtif"]),
        ('matches "it\'s"', ["it's so"], ["its"]),
        ("matches tif", ["a.tif"], ["a.png"]),
    ],
)
def test_operators(condition: str, true_of: list[Any], false_of: list[Any]) -> None:
    parsed = parse_condition(condition)
    assert parsed.source == condition
    assert [value for value in true_of if not parsed.holds(value)] == []
    assert [value for value in false_of if parsed.holds(value)] == []


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("< 100", ["99", None, True, [1], {}]),
        (">= 'a'", [1, None, True, []]),
        ("contains 'a'", [1, None, True, 1.5]),
        ("matches 'a'", [1, None, ["a"], {"a": 1}]),
    ],
)
def test_what_cannot_be_compared_is_an_error_that_names_both(condition: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ExpressionError) as caught:
            parse_condition(condition).holds(value)
        assert condition in str(caught.value)
        assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize(
    "condition", ["", " ", "100", "x", "= 1", "=> 1", "~ 1", "like 'a'", "<", "in", "is", "isnt 1"]
)
def test_a_condition_without_operator_or_value_is_refused(condition: str) -> None:
    with pytest.raises(ExpressionError, match="cannot be read") as caught:
        parse_condition(condition)
    assert 'such as "< 100"' in caught.value.remedy


@pytest.mark.parametrize(
    "condition",
    [
        "== 'a",
        "== a b",
        "== [1",
        "== 10mb",
        "== f(x)",
        "== 1 + x",
        "in [a, b]",
        "== {[]: 1}",
        "in {{}}",
        "== " + "(" * 9999,
        "== " + "[" * 9999,
        "< =1",
        "== \x00",
    ],
)
def test_what_is_not_a_value_is_refused(condition: str) -> None:
    with pytest.raises(ExpressionError, match="is not a value"):
        parse_condition(condition)


@pytest.mark.parametrize("condition", ["< true", "<= null", "> [1]", ">= {}", "< 1+2j"])
def test_an_order_needs_a_number_or_a_text(condition: str) -> None:
    with pytest.raises(ExpressionError, match="needs a number or a text"):
        parse_condition(condition)


@pytest.mark.parametrize("condition", ["in 'abc'", "in abc", "not in 1", "in null", "in {'a': 1}"])
def test_membership_needs_a_list(condition: str) -> None:
    with pytest.raises(ExpressionError, match="needs a list"):
        parse_condition(condition)


@pytest.mark.parametrize("pattern", ["'['", "'(a'", "'*'", "1", "null", "[1]", "'a{99999999999}'"])
def test_a_pattern_must_be_a_regular_expression(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="not a regular expression"):
        parse_condition(f"matches {pattern}")


def test_a_pattern_looks_at_the_beginning_of_a_long_text() -> None:
    condition = parse_condition("matches 'z'")
    assert condition.holds("a" * (LONGEST_MATCHED - 1) + "z")
    assert not condition.holds("a" * LONGEST_MATCHED + "z")


WORDS = ["<", "<=", ">", "==", "!=", "in ", "not in ", "contains ", "matches ", "is ", "is not "]
ENDS = st.sampled_from(
    ["1", "true", "x", "'a'", "[1, 'a']", "{1}", "{'a': []}", "{[]: 1}", "b'a'", "1j", "[[", "'[[a]'"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # Python's, about patterns that will mean something else
@settings(max_examples=200, deadline=None)
@given(st.text() | st.builds(str.__add__, st.sampled_from(WORDS), ENDS | st.text()), VALUES)
@example("contains [1]", {"a": 1})
@example("== {[]: 1}", 1)
def test_any_condition_is_answered_or_refused_with_our_error(source: str, value: Any) -> None:
    with suppress(ExpressionError):
        assert parse_condition(source).holds(value) in (True, False)


@settings(max_examples=100, deadline=None)
@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_compare_as_numbers(value: float, bound: float) -> None:
    for word, expected in (
        ("<", value < bound),
        ("<=", value <= bound),
        ("==", value == bound),
        ("!=", value != bound),
    ):
        assert parse_condition(f"{word} {bound!r}").holds(value) is expected
