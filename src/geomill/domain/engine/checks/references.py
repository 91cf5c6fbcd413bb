"""Checks the references of templates: that they exist, are upstream, and have a value when they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from geomill.domain.engine.checks.fields import NoField, output_type, walk
from geomill.domain.engine.checks.templates import Use
from geomill.domain.engine.expressions import environment
from geomill.domain.engine.finding import Finding
from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.reachability import Upstream, upstreams
from geomill.domain.engine.workflow import EndNode, StartNode, TaskNode, Workflow
from geomill.errors import nearest

ROOTS = ("inputs", "nodes", "job")
ITEM_ROOTS = ("item", "index")
PARTS = ("output", "status", "error")

_SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool}
_JOB = {"job_id": str, "workflow_id": str, "workflow_version": int}


def check_references(
    workflow: Workflow, handlers: Handlers, uses: Iterable[Use], *, sound_graph: bool
) -> Iterator[Finding]:
    good: dict[str | None, list[Use]] = {}
    for use in uses:
        finding = _check(workflow, handlers, use)
        if finding:
            yield finding
        elif use.reference.path[0] == "nodes" and len(use.reference.path) > 1:
            good.setdefault(use.owner, []).append(use)
    if sound_graph and good:
        for owner, upstream in upstreams(workflow.nodes):
            for use in good.get(owner, ()):
                yield from _timing(workflow, upstream, use)


def _check(workflow: Workflow, handlers: Handlers, use: Use) -> Finding | None:
    root = use.reference.path[0]
    if root == "inputs":
        return _input(workflow, use)
    if root == "nodes":
        return _node(workflow, handlers, use)
    if root == "job":
        return _field(use, _JOB, use.reference.path[1:])
    if root in ITEM_ROOTS and not use.per_item:
        return Finding(use.path, f"'{root}' exists only in the params of a fan_out's task")
    if root in (*ROOTS, *ITEM_ROOTS) or root in environment().globals:
        return None
    roots = (*ROOTS, *ITEM_ROOTS) if use.per_item else ROOTS
    dashed = _dashed(workflow)
    return Finding(use.path, f"'{use.reference}' begins with the unknown '{root}'", dashed or nearest(str(root), roots))


def _dashed(workflow: Workflow) -> str:
    """Return a hint about ids with a dash: `nodes.a-b.output` is parsed as a subtraction."""
    for root, names in (("nodes", workflow.nodes), ("inputs", workflow.inputs)):
        for name in names:
            if "-" in name:
                return f"write a name with a dash in brackets: {root}['{name}']"
    return ""


def _unknown(use: Use, kind: str, root: str, names: Collection[str]) -> Finding:
    name = str(use.reference.path[1])
    dashed = next((other for other in names if other.startswith(f"{name}-")), None)
    hint = f"write a name with a dash in brackets: {root}['{dashed}']" if dashed else nearest(name, names)
    return Finding(use.path, f"'{use.reference}' names the unknown {kind} '{name}'", hint)


def _input(workflow: Workflow, use: Use) -> Finding | None:
    match use.reference.path:
        case (_,):
            return None
        case (_, str() as name, *rest) if name in workflow.inputs:
            return _field(use, _SCALARS.get(workflow.inputs[name].type, Any), rest)
    return _unknown(use, "input", "inputs", workflow.inputs)


def _field(use: Use, annotation: Any, path: Iterable[str | int]) -> Finding | None:
    try:
        walk(annotation, path)
    except NoField as error:
        return Finding(use.path, f"'{use.reference}' does not exist: {error}", error.hint)
    return None


def _node(workflow: Workflow, handlers: Handlers, use: Use) -> Finding | None:
    match use.reference.path:
        case (_, name, *_) if name not in workflow.nodes:
            return _unknown(use, "node", "nodes", workflow.nodes)
        case (_, str() as name, "output", *rest):
            return _output(workflow, handlers, use, name, rest)
        case (_, _, "status" | "error", *rest):
            return _field(use, str, rest)
        case (_, name, part, *_):
            hint = nearest(str(part), PARTS)
            return Finding(use.path, f"node '{name}' has no '{part}', only output, status and error", hint)
    if use.reference.optional and len(use.reference.path) > 1:
        return None
    return Finding(use.path, f"'{use.reference}' is incomplete", "write nodes.<node>.output, .status or .error")


def _output(workflow: Workflow, handlers: Handlers, use: Use, name: str, rest: list[str | int]) -> Finding | None:
    node = workflow.nodes[name]
    if isinstance(node, StartNode | EndNode):
        return Finding(
            use.path, f"'{name}' is of the type {node.type}, which has no output", "write inputs.x to read an input"
        )
    return _field(use, output_type(node, handlers), rest)


def _timing(workflow: Workflow, upstream: Upstream, use: Use) -> Iterator[Finding]:
    name = str(use.reference.path[1])
    if not upstream.has(name):
        yield Finding(use.path, _not_upstream(use, name), "read only nodes that have run before")
    elif not use.reference.optional and (reason := _may_be_missing(workflow, upstream, use, name)):
        yield Finding(use.path, f"'{use.reference}' may be missing: {reason}", "give it a value with | default(...)")


def _not_upstream(use: Use, name: str) -> str:
    if use.owner == name:
        return f"node '{name}' refers to itself"
    return f"node '{name}' is not upstream of '{use.owner}'"


def _may_be_missing(workflow: Workflow, upstream: Upstream, use: Use, name: str) -> str:
    if use.reference.path[2:3] != ("output",):
        return ""  # status and error always exist
    if not upstream.surely_ran(name):
        return f"node '{name}' may be skipped"
    node = workflow.nodes[name]
    if isinstance(node, TaskNode) and node.on_failure == "continue":
        return f"node '{name}' may fail, with 'on_failure: continue'"
    return ""
