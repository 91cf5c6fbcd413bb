"""JSON that jsonb takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.jsonvalue import NotJson, to_json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("é", '"é"'),
        ({"a": [1, {"b": None}]}, '{"a":[1,{"b":null}]}'),
        ((1, 2), "[1,2]"),
        ({}, "{}"),
        (r"\u0000", r'"\\u0000"'),
        ({r"\u0000": [r"\u0000"]}, r'{"\\u0000":["\\u0000"]}'),
        ("😀", '"😀"'),
    ],
)
def test_json_is_written_compactly(value: Any, text: str) -> None:
    assert to_json(value) == text


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "value: nan is not a JSON number; use null"),
        ({"a": [1, float("inf")]}, "a[1]: inf is not a JSON number; use null"),
        ({"a": {"b": float("-inf")}}, "a.b: -inf is not a JSON number; use null"),
        ("a\x00b", "value: the text has a NUL character"),
        ([{"a": "\x00"}], "[0].a: the text has a NUL character"),
        ({"x": {"a\x00": 1}}, "'x.a\\x00': the text has a NUL character"),
        ({"a": "\ud800"}, "a: the text has half of a surrogate pair"),
        ({"\udfff": 1}, "half of a surrogate pair"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "when: a datetime is not a JSON value"),
        ([1, {2}], "[1]: a set is not a JSON value"),
        (b"x", "value: a bytes is not a JSON value"),
        ({"a": {(1, 2): 3}}, "a: the key (1, 2) is not a string"),
        (endless(), "nested too deeply"),
        (deep(100_000), "nested too deeply"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(NotJson) as caught:
        to_json(value)
    assert message in str(caught.value)


def test_what_has_no_place_is_named_with_python_s_reason() -> None:
    with pytest.raises(NotJson, match="not a JSON value: Exceeds the limit"):
        to_json(10**5000)


STORABLE = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(STORABLE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(STORABLE), inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_storable_values_survive(value: Any) -> None:
    assert json.loads(to_json(value).encode()) == value


@settings(max_examples=150, deadline=None)
@given(JSON, st.sampled_from([float("nan"), "\x00", "x\ud800", b"", object()]), st.integers(0, 3))
def test_one_bad_value_anywhere_is_found(value: Any, bad: Any, depth: int) -> None:
    for level in range(depth):
        bad = {"key": bad, "other": value} if level % 2 else [value, bad]
    with pytest.raises(NotJson, match=r"is not a JSON|NUL|surrogate"):
        to_json(bad)
