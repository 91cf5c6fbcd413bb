"""Finds the templates of a workflow and their references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from geomill.domain.engine.expressions import Reference, compile_value
from geomill.domain.engine.finding import Finding, Path
from geomill.domain.engine.workflow import ConditionalNode, FanOutNode, TaskNode, Workflow
from geomill.errors import ExpressionError

_MARKS = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True)
class Use:
    """A reference in a template of a node or, if `owner` is None, of the workflow's outputs."""

    path: Path
    owner: str | None
    reference: Reference
    per_item: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    owner: str | None
    value: Any
    per_item: bool = False


def has_template(value: Any) -> bool:
    return any(True for _ in _texts((), value))


def read_templates(workflow: Workflow) -> tuple[list[Use], list[Finding]]:
    """Return every reference, and a finding for every template that cannot be read."""
    uses: list[Use] = []
    unreadable: list[Finding] = []
    for place in _places(workflow):
        for path, text in _texts(place.path, place.value):
            try:
                references = dict.fromkeys(compile_value(text).references)
            except ExpressionError as error:
                unreadable.append(Finding(path, error.message, error.remedy))
            else:
                uses.extend(Use(path, place.owner, reference, place.per_item) for reference in references)
    return uses, unreadable


def _places(workflow: Workflow) -> Iterator[_Place]:
    for node_id, node in workflow.nodes.items():
        match node:
            case TaskNode():
                yield _Place(("nodes", node_id, "params"), node_id, node.params)
            case FanOutNode():
                yield _Place(("nodes", node_id, "source"), node_id, node.source)
                yield _Place(("nodes", node_id, "task", "params"), node_id, node.task.params, per_item=True)
            case ConditionalNode():
                yield _Place(("nodes", node_id, "condition_field"), node_id, node.condition_field)
            case _:
                pass
    if workflow.outputs is not None:
        yield _Place(("outputs",), None, workflow.outputs)


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    """Yield every string with a template in it."""
    if isinstance(value, str):
        if any(mark in value for mark in _MARKS):
            yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts((*path, key), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
