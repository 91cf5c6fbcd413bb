"""Checks whether a path can exist in an output, by following the types of Pydantic models as far as they are known."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.workflow import ConditionalNode, FanInNode, FanOutNode, Node, TaskNode
from geomill.errors import nearest

Fields = Mapping[str, Any]

_COUNT: Fields = {"count": int}
_FAN_IN: Mapping[str, Fields] = {
    "collect": {"results": list[Any], **_COUNT},
    "outcomes": {"results": list[Any], "failed": int, **_COUNT},
    "concat": {"results": list[Any], **_COUNT},
    "sum": {"total": float, **_COUNT},
    "first": {"result": Any, **_COUNT},
    "last": {"result": Any, **_COUNT},
    "count": _COUNT,
}
_FAN_OUT: Fields = {"total": int, "completed": int, "failed": int}
_CONDITIONAL: Fields = {"value": Any, "branch": str, "number": int, "next": list[str]}
_SCALARS = {str: "a string", int: "an integer", float: "a number", bool: "a boolean"}


class NoField(LookupError):  # noqa: N818
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def output_type(node: Node, handlers: Handlers) -> Any:
    """Return the type of a node's output: a model, the known fields, or Any."""
    match node:
        case TaskNode(handler=name) if name in handlers:
            return handlers[name].output or Any
        case FanInNode():
            return _FAN_IN[node.aggregation]
        case FanOutNode():
            return _FAN_OUT
        case ConditionalNode():
            return _CONDITIONAL
    return Any


def walk(annotation: Any, path: Iterable[str | int]) -> Any:
    """Return the type at the end of the path; Any if it is unknown. Raises `NoField` if the path cannot exist."""
    for key in path:
        annotation = _step(annotation, key)
    return annotation


def _step(annotation: Any, key: str | int) -> Any:
    annotation = _unwrap(annotation)
    origin = get_origin(annotation) or annotation
    if isinstance(annotation, Mapping):
        return _field(annotation, key)
    if origin in (Union, types.UnionType):
        return _union(get_args(annotation), key)
    if not isinstance(origin, type):
        return Any
    if issubclass(origin, BaseModel):
        return _model(origin, key)
    return _plain(origin, get_args(annotation), key)


def _unwrap(annotation: Any) -> Any:
    while True:
        if hasattr(annotation, "__value__"):  # a type alias
            annotation = annotation.__value__
        elif hasattr(annotation, "__metadata__"):  # Annotated
            annotation = annotation.__origin__
        else:
            return annotation


def _plain(origin: type, arguments: tuple[Any, ...], key: str | int) -> Any:
    if origin in _SCALARS and not (origin is str and isinstance(key, int)):
        raise NoField(f"{_SCALARS[origin]} has no {_named(key)}")
    if issubclass(origin, str):
        return Any
    if issubclass(origin, Mapping):
        return arguments[1] if len(arguments) == 2 else Any
    if issubclass(origin, Sequence | Set):
        if isinstance(key, str):
            raise NoField(f"a list has no {_named(key)}", "read an item by its position, as in [0]")
        return arguments[0] if len(set(arguments) - {...}) == 1 else Any
    return Any


def _union(options: tuple[Any, ...], key: str | int) -> Any:
    fields: list[Any] = []
    failure = None
    for option in options:
        if option is type(None):
            continue
        try:
            fields.append(_step(option, key))
        except NoField as error:
            failure = failure or error
    if failure and not fields:
        raise failure
    return fields[0] if len(fields) == 1 else Any


def _model(model: type[BaseModel], key: str | int) -> Any:
    if issubclass(model, RootModel):
        return _step(model.model_fields["root"].annotation, key)
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        names = (name, field.alias, field.serialization_alias)
        fields.update({spelling: field.annotation for spelling in names if spelling})
    fields.update({name: computed.return_type for name, computed in model.model_computed_fields.items()})
    if key not in fields and model.model_config.get("extra") == "allow":
        return Any
    return _field(fields, key)


def _field(fields: Fields, key: str | int) -> Any:
    if key not in fields:
        raise NoField(f"there is no {_named(key)}", nearest(str(key), fields))
    return fields[str(key)]


def _named(key: str | int) -> str:
    return f"item {key}" if isinstance(key, int) else f"field '{key}'"
