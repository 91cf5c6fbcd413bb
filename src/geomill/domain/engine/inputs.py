"""Checks a job's inputs against the declarations of its workflow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from geomill.domain.engine.finding import shown
from geomill.domain.engine.patterns import matches
from geomill.domain.engine.workflow import InputDefinition, Workflow
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.errors import InputsError, Problem, nearest

_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object"}


def type_fits(definition: InputDefinition, value: Any) -> bool:
    """Whether the value has the declared type. Nothing is converted: neither true nor 5.0 is an integer."""
    return _FITS[definition.type](value)


def type_name(definition: InputDefinition) -> str:
    return _ARTICLES.get(definition.type, f"a {definition.type}")


def validate_inputs(workflow: Workflow, values: Any) -> dict[str, Any]:
    """Return the inputs with defaults applied, in the order of the workflow. Raises `InputsError` with all problems."""
    if not isinstance(values, Mapping):
        raise InputsError(f"the inputs of '{workflow.workflow_id}' must be an object, not {shown(values)}")
    problems = [*_unknown(workflow, values), *_faulty(workflow, values)]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        message = f"the inputs of '{workflow.workflow_id}' are wrong: {problems[0]}{more}"
        raise InputsError(message, problems=problems)
    return {name: values.get(name, definition.default) for name, definition in workflow.inputs.items()}


def option_faults(workflow: Workflow, options: Mapping[str, Any], facts: Collection[str]) -> list[Problem]:
    """Return the problems of a submitter's options. `facts` are the names of the inputs that the platform sets."""
    clashes = [Problem(name, "is set by geomill", "remove it") for name in options if name in facts]
    missing = [
        problem for problem in _faulty(workflow, {**dict.fromkeys(facts), **options}) if problem.where not in facts
    ]
    return [*clashes, *_unknown(workflow, {name: None for name in options if name not in facts}), *missing]


def _unknown(workflow: Workflow, values: Mapping[str, Any]) -> Iterator[Problem]:
    for name in values:
        if name not in workflow.inputs:
            yield Problem(str(name), f"there is no input {name!r}", nearest(str(name), workflow.inputs))


def _faulty(workflow: Workflow, values: Mapping[str, Any]) -> Iterator[Problem]:
    for name, definition in workflow.inputs.items():
        if name in values:
            for fault in input_faults(definition, values[name]):
                yield Problem(name, fault, definition.description or "")
        elif definition.is_required:
            hint = definition.description or f"give {type_name(definition)}"
            yield Problem(name, "the input is missing", hint)


def input_faults(definition: InputDefinition, value: Any) -> Iterator[str]:
    """Yield the faults of a value. Null is allowed for an optional input without a default."""
    if value is None and not definition.is_required and definition.default is None:
        return
    try:
        to_json(value)
    except NotJson as error:
        yield f"cannot be stored as JSON: {error}"
        return
    yield from value_faults(definition, value)


def value_faults(definition: InputDefinition, value: Any) -> Iterator[str]:
    """Yield the faults of a JSON value as predicates, such as "must be at most 5, not 7"."""
    if not type_fits(definition, value):
        yield f"must be {type_name(definition)}, not {shown(value)}"
        return
    if definition.enum is not None and not any(_same(value, choice) for choice in definition.enum):
        yield f"must be one of {', '.join(map(shown, definition.enum))}, not {shown(value)}"
    yield from _outside_bounds(definition, value)
    if definition.pattern is not None and isinstance(value, str) and not matches(definition.pattern, value):
        yield f"must match the pattern {definition.pattern!r}, not be {shown(value)}"


def _outside_bounds(definition: InputDefinition, value: Any) -> Iterator[str]:
    if isinstance(value, int | float):
        if definition.minimum is not None and value < definition.minimum:
            yield f"must be at least {definition.minimum:g}, not {shown(value)}"
        if definition.maximum is not None and value > definition.maximum:
            yield f"must be at most {definition.maximum:g}, not {shown(value)}"
    if isinstance(value, str | list | tuple):
        unit = "characters" if isinstance(value, str) else "items"
        if definition.min_length is not None and len(value) < definition.min_length:
            yield f"must have at least {definition.min_length} {unit}, not {len(value)}: {shown(value)}"
        if definition.max_length is not None and len(value) > definition.max_length:
            yield f"must have at most {definition.max_length} {unit}, not {len(value)}: {shown(value)}"


def _same(left: Any, right: Any) -> bool:
    """Equality without Python's True == 1."""
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def parse_input_text(definition: InputDefinition, text: str, *, name: str = "the input") -> Any:
    """Parse an input from the command line. A string is taken unchanged, everything else is JSON."""
    if definition.type == "string":
        return text
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = ...
    optional_null = value is None and not definition.is_required
    if value is ... or not (optional_null or type_fits(definition, value)) or _infinite(value):
        raise InputsError(
            f"{name} must be {type_name(definition)}, not {shown(text)}", remedy=f"write {_EXAMPLES[definition.type]}"
        )
    return value


_EXAMPLES = {
    "integer": "it in digits, such as 5",
    "number": "it as a JSON number, such as 2.5",
    "boolean": "true or false",
    "array": 'it as JSON, such as ["a", "b"]',
    "object": 'it as JSON, such as {"a": 1}',
}


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
