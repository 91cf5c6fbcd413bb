"""A workflow compiled for execution: edges both ways, templates and conditions parsed once.

Only a workflow that passed `checks` is compiled, so this module does not check for errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.conditions import Condition, parse_condition
from geomill.domain.engine.expressions import Compiled, Scope, compile_value
from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.retry import RetryPolicy
from geomill.domain.engine.workflow import (
    DEFAULT_TIMEOUT_SECONDS,
    ConditionalNode,
    EndNode,
    FanOutNode,
    Node,
    StartNode,
    TaskNode,
    TaskTemplate,
    Workflow,
)
from geomill.errors import ExpressionError


def targets(node: Node) -> tuple[str, ...]:
    """Return the nodes that may follow, each once."""
    match node:
        case EndNode():
            return ()
        case ConditionalNode():
            return tuple(dict.fromkeys(target for branch in node.branches for target in branch.next))
        case _:
            return tuple(dict.fromkeys(node.next))


def branch_labels(node: Node) -> dict[str, str]:
    """Return for every node that a conditional may lead to the branches that do, by name or condition."""
    labels: dict[str, list[str]] = {}
    for branch in node.branches if isinstance(node, ConditionalNode) else ():
        for target in dict.fromkeys(branch.next):
            labels.setdefault(target, []).append(branch.name or branch.condition or "otherwise")
    return {target: " or ".join(names) for target, names in labels.items()}


def incoming(nodes: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    """Return for every node the nodes that lead to it, in the order of the file."""
    sources_of: dict[str, list[str]] = {node_id: [] for node_id in nodes}
    for node_id, node in nodes.items():
        for target in targets(node):
            if target in sources_of:
                sources_of[target].append(node_id)
    return {node_id: tuple(sources) for node_id, sources in sources_of.items()}


@dataclass(frozen=True, slots=True)
class Execution:
    """How a worker runs a task. The parameters are ready to render."""

    handler: str
    queue: str
    params: Compiled
    timeout_seconds: float
    dispatch_timeout_seconds: float | None
    progress_timeout_seconds: float | None
    retry: RetryPolicy
    circuit_breaker: CircuitBreaker | None = None


@dataclass(frozen=True, slots=True)
class CompiledBranch:
    condition: Condition | None
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class GraphNode:
    node_id: str
    definition: Node
    dependencies: tuple[str, ...]
    successors: tuple[str, ...]
    execution: Execution | None = None
    value: Compiled | None = None
    branches: tuple[CompiledBranch, ...] = ()


@dataclass(frozen=True)
class Graph:
    workflow: Workflow
    definition_hash: str
    start: str
    nodes: Mapping[str, GraphNode]
    outputs: Compiled | None = None
    ends: tuple[str, ...] = field(default=())

    def result_nodes(self) -> tuple[str, ...]:
        """Return the nodes whose outputs are the job's result if the workflow declares no outputs: those before an
        end."""
        return tuple(dict.fromkeys(source for end in self.ends for source in self.nodes[end].dependencies))


def compile_graph(workflow: Workflow) -> Graph:
    before = incoming(workflow.nodes)
    nodes = {node_id: _compile(node_id, node, before[node_id]) for node_id, node in workflow.nodes.items()}
    return Graph(
        workflow=workflow,
        definition_hash=workflow.hash(),
        start=next(_of_type(workflow.nodes, StartNode)),
        nodes=nodes,
        outputs=None if workflow.outputs is None else compile_value(workflow.outputs),
        ends=tuple(_of_type(workflow.nodes, EndNode)),
    )


def _of_type(nodes: Mapping[str, Node], kind: type[StartNode | EndNode]) -> Iterator[str]:
    return (node_id for node_id, node in nodes.items() if isinstance(node, kind))


def _compile(node_id: str, node: Node, dependencies: tuple[str, ...]) -> GraphNode:
    execution: Execution | None = None
    value: Compiled | None = None
    branches: tuple[CompiledBranch, ...] = ()
    match node:
        case TaskNode():
            execution = _execution(node)
        case FanOutNode():
            execution = _execution(node.task)
            value = compile_value(node.source)
        case ConditionalNode():
            value = compile_value(node.condition_field)
            branches = tuple(
                CompiledBranch(parse_condition(branch.condition) if branch.condition else None, frozenset(branch.next))
                for branch in sorted(node.branches, key=lambda branch: branch.default)
            )
        case _:
            pass
    return GraphNode(node_id, node, dependencies, targets(node), execution, value, branches)


def _execution(node: TaskTemplate) -> Execution:
    return Execution(
        handler=node.handler,
        queue=node.queue or LIGHT_QUEUE,
        params=_params(node.params),
        timeout_seconds=node.timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
        dispatch_timeout_seconds=node.dispatch_timeout_seconds,
        progress_timeout_seconds=node.progress_timeout_seconds,
        retry=node.retry,
        circuit_breaker=node.circuit_breaker,
    )


def _params(value: dict[str, Any] | str) -> Compiled:
    """Compile the parameters. If one template gives all of them, its result is checked when it is rendered."""
    compiled = compile_value(value)
    if not isinstance(value, str):
        return compiled

    def mapping(scope: Scope) -> Any:
        params = compiled.render(scope)
        if not isinstance(params, dict):
            raise ExpressionError(f"the params {value!r} must be a mapping, not {str(params)[:80]!r}")
        return params

    return Compiled(mapping, compiled.references)
