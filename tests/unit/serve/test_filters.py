"""Filters: what is within the limits is read, what is not is refused before cql2 sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.errors import InputError
from geomill.serve.filters import (
    DEEPEST,
    DEEPEST_DOCUMENT,
    LONGEST,
    MOST_NODES,
    check_json,
    check_text,
    checked,
    read_filter,
)

READABLE = {
    "a = 1": {"op": "=", "args": [{"property": "a"}, 1]},
    "NOT (a > 1 AND b < 2)": None,
    "a IN ('x', 'y (not a group')": None,
    "CASEI(name) LIKE 'cap%'": None,
    "((a = 1 OR b = 2) AND (c = 3 OR d = -4.5))": None,
    "a BETWEEN 1 AND 2 AND b IS NOT NULL": None,
    "S_INTERSECTS(geom, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((-5 -5, -4 -5, -4 -4, -5 -5))))": None,
    "T_AFTER(made, TIMESTAMP('2020-01-01T00:00:00Z'))": None,
    f"a IN ({','.join(map(str, range(MOST_NODES - 10)))})": None,
    "a = 1 + 2 * (3 - 4)": None,
    '{"op": "=", "args": [{"property": "a"}, 1]}': {"op": "=", "args": [{"property": "a"}, 1]},
}


@pytest.mark.parametrize("text", READABLE)
def test_what_people_write_is_read(text: str) -> None:
    document = read_filter(text)
    assert document["op"]
    assert READABLE[text] in (None, document)


def test_a_box_becomes_a_polygon() -> None:
    ring = [[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    for box in ("-180,-90,180,90", "-180,-90,0,180,90,100"):
        assert read_filter(f"S_INTERSECTS(geom,BBOX({box}))")["args"][1] == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 'x" + "x" * LONGEST, f"at most {LONGEST} characters"),
        ("NOT " * (DEEPEST + 1) + "a = 1", f"at most {DEEPEST} levels"),
        ("a = " + "- " * (DEEPEST + 1) + "1", f"at most {DEEPEST} levels"),
        ("f(" * (DEEPEST + 1), f"at most {DEEPEST} levels"),
        ("((a = 1)", "never closed"),
        ("+".join(["1"] * MOST_NODES), f"at most {MOST_NODES} names"),
        ("(((((((a = " + "'x' OR " * 100 + ")))))))", "7 nested groups of parentheses"),
    ],
)
def test_raw_texts_are_counted(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_text(text)


def test_raw_documents_are_counted() -> None:
    check_json("[" * DEEPEST_DOCUMENT + "]" * DEEPEST_DOCUMENT, field="filter")
    check_json(json.dumps({"text": "[" * 1000 + '\\"' + "," * 9000}), field="filter")
    for text in ("[" * (DEEPEST_DOCUMENT + 1), "[" + "1," * 6000 + "1]", " " * 60_000):
        with pytest.raises(InputError):
            check_json(text, field="filter")


def test_documents_are_counted_without_recursion() -> None:
    deep: Any = {"op": "=", "args": [{"property": "a"}, 1]}
    for _ in range(50_000):
        deep = {"op": "not", "args": [deep]}
    with pytest.raises(InputError, match="levels deep"):
        checked(deep)
    while deep["op"] == "not":  # Python would free it by recursion
        deep = deep["args"].pop()


@given(st.text(alphabet="a1=()'\"-+,. NOTANDORBBOX\x00{}[]:", max_size=120))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = read_filter(text)
    except InputError:
        return
    json.dumps(document, allow_nan=False)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["op", "args", "property", "bbox", "coordinates", "type", "date"]), inner, max_size=3
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.fixed_dictionaries({"op": st.sampled_from(["and", "=", "s_intersects"]), "args": st.lists(values)}) | values)
def test_any_document_is_taken_or_refused(document: Any) -> None:
    try:
        accepted = checked(document)
    except InputError:
        return
    json.dumps(accepted, allow_nan=False).encode()
