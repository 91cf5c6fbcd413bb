"""Inputs of a job: strict types, bounds, defaults, and messages that help."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geomill.domain.engine.inputs import parse_input_text, validate_inputs
from geomill.domain.engine.workflow import InputDefinition, Workflow
from geomill.errors import InputsError

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def workflow(**inputs: dict[str, Any]) -> Workflow:
    nodes = {"S": {"type": "start", "next": "E"}, "E": {"type": "end"}}
    return Workflow.model_validate({"workflow_id": "sample", "name": "Sample", "inputs": inputs, "nodes": nodes})


def refused(definition: dict[str, Any], value: Any) -> str:
    with pytest.raises(InputsError) as caught:
        validate_inputs(workflow(x=definition), {"x": value})
    assert caught.value.problems[0].where == "x"
    return caught.value.problems[0].message


def test_defaults_are_applied_in_the_order_of_the_workflow() -> None:
    declared = workflow(a={"default": "A"}, b={"type": "integer"}, c={"required": False}, d={"default": None})
    assert validate_inputs(declared, {"b": 5}) == {"a": "A", "b": 5, "c": None, "d": None}
    assert list(validate_inputs(declared, {"b": 5})) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", ""),
        ("integer", -3),
        ("number", 3),
        ("number", 2.5),
        ("boolean", False),
        ("array", []),
        ("object", {"a": [None]}),
    ],
)
def test_values_of_the_right_type(kind: str, value: Any) -> None:
    assert validate_inputs(workflow(x={"type": kind}), {"x": value}) == {"x": value}


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("string", 5, "must be a string, not 5"),
        ("string", None, "must be a string, not null"),
        ("integer", True, "must be an integer, not true"),
        ("integer", 5.0, "must be an integer, not 5.0"),
        ("integer", "5", 'must be an integer, not "5"'),
        ("number", False, "must be a number, not false"),
        ("number", float("nan"), "cannot be stored as JSON: value: nan is not a JSON number"),
        ("boolean", 1, "must be a boolean, not 1"),
        ("boolean", "true", 'must be a boolean, not "true"'),
        ("array", {"a": 1}, 'must be an array, not {"a": 1}'),
        ("array", "a,b", 'must be an array, not "a,b"'),
        ("object", [], "must be an object, not []"),
        ("object", {"a": "\x00"}, "cannot be stored as JSON: a: the text has a NUL character"),
        ("array", [{1, 2}], "cannot be stored as JSON: [0]: a set is not a JSON value"),
    ],
)
def test_values_of_the_wrong_type(kind: str, value: Any, message: str) -> None:
    assert refused({"type": kind}, value).startswith(message)


@pytest.mark.parametrize(
    ("definition", "value", "message"),
    [
        ({"type": "integer", "minimum": 1}, 0, "must be at least 1, not 0"),
        ({"type": "number", "maximum": 2.5}, 2.6, "must be at most 2.5, not 2.6"),
        ({"min_length": 2}, "a", 'must have at least 2 characters, not 1: "a"'),
        ({"type": "array", "max_length": 1}, [1, 2], "must have at most 1 items, not 2: [1, 2]"),
        ({"pattern": "^[a-z]+$"}, "A1", "must match the pattern '^[a-z]+$', not be \"A1\""),
        ({"enum": ["a", "b"]}, "c", 'must be one of "a", "b", not "c"'),
        ({"type": "number", "enum": [0, 1]}, 2, "must be one of 0, 1, not 2"),
    ],
)
def test_bounds(definition: dict[str, Any], value: Any, message: str) -> None:
    assert refused(definition, value) == message


def test_bounds_include_their_ends() -> None:
    declared = workflow(x={"type": "integer", "minimum": 1, "maximum": 3})
    assert [validate_inputs(declared, {"x": n})["x"] for n in (1, 3)] == [1, 3]


def test_every_problem_is_told_and_the_first_is_named() -> None:
    declared = workflow(a={"description": "the area"}, b={"type": "integer"}, name={"default": "x"})
    with pytest.raises(InputsError) as caught:
        validate_inputs(declared, {"b": "five", "nam": "y"})
    assert [(p.where, p.message) for p in caught.value.problems] == [
        ("nam", "there is no input 'nam'"),
        ("a", "the input is missing"),
        ("b", 'must be an integer, not "five"'),
    ]
    assert caught.value.problems[0].hint == "did you mean 'name'?"
    assert caught.value.problems[1].hint == "the area"
    message = "the inputs of 'sample' are wrong: nam: there is no input 'nam' (did you mean 'name'?) (and 2 more)"
    assert str(caught.value) == message


def test_long_values_are_cut() -> None:
    assert len(refused({"type": "integer"}, "x" * 10_000)) < 120


def test_null_is_for_optional_inputs_without_a_default() -> None:
    assert validate_inputs(workflow(x={"required": False}), {"x": None}) == {"x": None}
    assert "must be a string" in refused({"default": "a"}, None)


@pytest.mark.parametrize("values", [None, [], "x", 5])
def test_inputs_must_be_an_object(values: Any) -> None:
    with pytest.raises(InputsError, match="must be an object"):
        validate_inputs(workflow(), values)


@patient
@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e", "f", "zz"]), JSON))
def test_whatever_is_given_is_returned_or_refused(values: dict[str, Any]) -> None:
    declared = workflow(
        a={},
        b={"type": "integer", "default": 1, "minimum": -5},
        c={"type": "number", "required": False},
        d={"type": "boolean", "default": False},
        e={"type": "array", "default": [], "max_length": 3},
        f={"type": "object", "default": {}},
    )
    result, wrong = {}, set[str]()
    try:
        result = validate_inputs(declared, values)
    except InputsError as error:
        wrong = {problem.where for problem in error.problems}
    assert wrong <= {*declared.inputs, *values}
    if not wrong:
        assert list(result) == list(declared.inputs)
        assert all(result[name] == value for name, value in values.items())
        json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "5", "5"),
        ("string", "", ""),
        ("integer", "5", 5),
        ("integer", " -5 ", -5),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("boolean", "true", True),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": null}', {"a": None}),
    ],
)
def test_text_becomes_the_declared_type(kind: Any, text: str, value: Any) -> None:
    assert parse_input_text(InputDefinition(type=kind), text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "5.0"),
        ("integer", "five"),
        ("integer", ""),
        ("integer", "null"),
        ("number", "NaN"),
        ("number", "1e999"),
        ("number", "true"),
        ("boolean", "yes"),
        ("boolean", "1"),
        ("array", "a,b"),
        ("array", "{}"),
        ("object", "[" * 100_000),
    ],
)
def test_text_that_is_not_of_the_declared_type(kind: Any, text: str) -> None:
    with pytest.raises(InputsError, match=r"n must be an? \w+, not .*; write "):
        parse_input_text(InputDefinition(type=kind), text, name="n")


def test_null_as_text_for_an_optional_input() -> None:
    assert parse_input_text(InputDefinition(type="integer", required=False), "null") is None


@patient
@given(st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]), st.text())
def test_any_text_is_read_or_refused(kind: Any, text: str) -> None:
    definition = InputDefinition(type=kind)
    try:
        value = parse_input_text(definition, text)
    except InputsError:
        return
    json.dumps(value, allow_nan=False)
