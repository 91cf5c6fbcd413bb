"""Pydantic's errors in the words of the format, at their place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from geomill.domain.engine.finding import Finding, Path, shown
from geomill.domain.engine.retry import RetryPolicy
from geomill.domain.engine.workflow import (
    Branch,
    ConditionalNode,
    EndNode,
    FanInNode,
    FanOutNode,
    InputDefinition,
    StartNode,
    TaskNode,
    TaskTemplate,
    Workflow,
)
from geomill.errors import nearest

NODE_TYPES: dict[str, type[BaseModel]] = {
    "start": StartNode,
    "end": EndNode,
    "task": TaskNode,
    "conditional": ConditionalNode,
    "fan_out": FanOutNode,
    "fan_in": FanInNode,
}
_NAMES = "letters, digits, '_' and '-', at most 64 of them, beginning with a letter or '_'"


def schema_findings(error: ValidationError, data: dict[str, Any]) -> list[Finding]:
    """Every error once, in the order of Pydantic."""
    errors = error.errors(include_url=False)
    return list(dict.fromkeys(_finding(each, data) for each in errors if not _follows(each)))


def _follows(error: ErrorDetails) -> bool:
    """A list is also too short for Pydantic when its only items are wrong, which is told already."""
    return error["type"] == "too_short" and bool(error["input"])


def _finding(error: ErrorDetails, data: dict[str, Any]) -> Finding:
    path = _path(error["loc"], data)
    key = str(error["loc"][-1]) if error["loc"] else ""
    if _is_tolerance(path, data):
        return Finding(path[:3], "must be 'fail', 'continue' or 'tolerate: 5%'", f"it is {shown(_at(data, path[:3]))}")
    match error["type"]:
        case "missing":
            return Finding(path, f"the key '{key}' is missing")
        case "extra_forbidden":
            return Finding(path, f"unknown key '{key}'", _nearest_key(key, path[:-1], data))
        case "union_tag_invalid" | "union_tag_not_found":
            return _node_type(path, error["input"])
        case "literal_error":
            hint = nearest(str(error["input"]), _literals(error))
            return Finding(path, f"{shown(error['input'])} is not allowed here", hint)
    if error["type"] == "too_short":
        return Finding(path, f"'{key}' is empty", "give at least one")
    if key == "[key]":
        return Finding(path, f"{shown(error['input'])} cannot be a name", f"use {_NAMES}")
    message = error["msg"].removeprefix("Value error, ")
    return Finding(path, message[:1].lower() + message[1:], f"it is {shown(error['input'])}")


def _path(loc: tuple[str | int, ...], data: dict[str, Any]) -> Path:
    """Pydantic's place without the names of union members, which are not in the file."""
    parts = loc[:2] + loc[3:] if loc[0] == "nodes" and len(loc) > 2 else loc
    here: Any = data
    path: list[str | int] = []
    for part in parts:
        if not _has(here, part):
            continue
        path.append(part)
        here = here[part]
    return tuple(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _is_tolerance(path: Path, data: dict[str, Any]) -> bool:
    return path[:1] == ("nodes",) and path[2:3] == ("on_failure",) and _at(data, path[:2]).get("type") == "fan_out"


def _node_type(path: Path, value: Any) -> Finding:
    if not isinstance(value, dict):
        return Finding(path, f"a node is a mapping with a type, not {shown(value)}")
    kind = value.get("type")
    return Finding((*path, "type"), f"unknown node type {shown(kind)}", nearest(str(kind), NODE_TYPES))


def _literals(error: ErrorDetails) -> Iterator[str]:
    """Pydantic lists them as text: 'a', 'b' or 'c'."""
    expected = error.get("ctx", {}).get("expected", "")
    return (part.strip(" '") for part in expected.replace(" or ", ", ").split(", "))


def _nearest_key(key: str, path: Path, data: dict[str, Any]) -> str:
    model = _model_at(path, data)
    return nearest(key, model.model_fields) if model else ""


def _model_at(path: Path, data: dict[str, Any]) -> type[BaseModel] | None:
    match path:
        case ():
            return Workflow
        case ("inputs", _):
            return InputDefinition
        case ("nodes", _):
            return NODE_TYPES.get(_at(data, path).get("type", "task"))
        case ("nodes", _, "task"):
            return TaskTemplate
        case ("nodes", _, "branches", _):
            return Branch
        case (*_, "retry"):
            return RetryPolicy
    return None
