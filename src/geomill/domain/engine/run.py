"""The state of one job for the evaluator: each node, and of each fan-out the items under way. Ended items are counted.

A `RunState` changes only by `apply(decision)`, after the decision was committed. If the commit fails, the state still
agrees with the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from geomill.domain.engine.graph import Graph, GraphNode
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.workflow import FanOutNode, TaskNode
from geomill.domain.ids import SINGLE
from geomill.domain.states import NODE_MACHINE, JobStatus, NodeStatus
from geomill.errors import ExpressionError

if TYPE_CHECKING:
    from geomill.domain.engine.decision import Decision


@dataclass(frozen=True, slots=True)
class NodeRun:
    """The state of a node, as far as decisions depend on it."""

    status: NodeStatus = NodeStatus.PENDING
    waiting: int = 0
    """The number of dependencies that are not terminal yet."""
    live: bool = False
    """Whether an edge to this node was taken. Otherwise the node is skipped."""
    attempt: int = 0
    failures: int = 0
    output: Any = None
    error: str = ""

    @property
    def terminal(self) -> bool:
        return self.status in NODE_MACHINE.terminal


@dataclass(slots=True)
class ItemRun:
    """One item of a fan-out that has been dispatched at least once."""

    status: NodeStatus
    attempt: int = 1
    failures: int = 0
    error: str = ""
    sent_at: datetime | None = field(default=None, compare=False)
    """None after a takeover."""
    stored: bool = False
    """Whether it has a row of its own."""

    @property
    def only_sent(self) -> bool:
        """Whether the item needs no row, because the count of sent items in its fan-out says all about it."""
        return self.status is NodeStatus.DISPATCHED and self.attempt == 1 and not self.stored


@dataclass(slots=True)
class FanOutRun:
    """The items of a fan-out under way. Those that ended are only counted."""

    items: list[Any]
    next_index: int = 0
    in_flight: dict[int, ItemRun] = field(default_factory=dict)
    completed: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return len(self.items)


@dataclass(slots=True)
class RunState:
    graph: Graph
    job_id: str
    inputs: dict[str, Any]
    status: JobStatus = JobStatus.PENDING
    nodes: dict[str, NodeRun] = field(default_factory=dict)
    fan_outs: dict[str, FanOutRun] = field(default_factory=dict)
    open_nodes: int = 0
    retries: int = 0
    paused: bool = False

    @classmethod
    def begin(cls, graph: Graph, job_id: str, inputs: dict[str, Any]) -> RunState:
        """Return the state of a job that has not begun."""
        nodes = {node_id: NodeRun(waiting=len(node.dependencies)) for node_id, node in graph.nodes.items()}
        return cls(graph, job_id, inputs, nodes=nodes, open_nodes=len(nodes))

    @classmethod
    def restore(
        cls,
        graph: Graph,
        job_id: str,
        inputs: dict[str, Any],
        status: JobStatus,
        rows: Iterable[NodeState],
        *,
        paused: bool = False,
    ) -> RunState:
        """Return the state from the rows of the database, for an orchestrator that takes over a job."""
        run = cls.begin(graph, job_id, inputs)
        run.status, run.paused = status, paused
        sent: dict[str, int] = {}
        children: dict[str, list[NodeState]] = {}
        for row in rows:
            run.retries += row.retry_count
            if row.item_index == SINGLE:
                run.nodes[row.node_id] = node_run(row)
                sent[row.node_id] = row.items_sent or 0
            else:
                children.setdefault(row.node_id, []).append(row)
        run.recount()
        for node_id, node in run.nodes.items():
            if node.status is NodeStatus.RUNNING and isinstance(graph.nodes[node_id].definition, FanOutNode):
                run.fan_outs[node_id] = _fan_out_run(run, node_id, sent[node_id], children.get(node_id, []))
        return run

    def recount(self) -> None:
        """Compute `waiting` and `live` of every node from the states of its dependencies."""
        self.open_nodes = sum(not node.terminal for node in self.nodes.values())
        for node_id, graph_node in self.graph.nodes.items():
            before = [(self.graph.nodes[source], self.nodes[source]) for source in graph_node.dependencies]
            self.nodes[node_id] = replace(
                self.nodes[node_id],
                waiting=sum(not run.terminal for _, run in before),
                live=any(leads_to(node, run, node_id) for node, run in before),
            )

    def apply(self, decision: Decision) -> None:
        """Apply a committed decision. The cost is proportional to the change."""
        self.nodes.update(decision.nodes)
        self.open_nodes -= decision.closed
        self.status = decision.status
        self.retries += decision.retries
        self.paused = self.paused if decision.paused is None else decision.paused
        for node_id, change in decision.fan_outs.items():
            fan_out = self.fan_outs.setdefault(node_id, FanOutRun(change.items))
            fan_out.next_index = change.next_index
            fan_out.completed += change.completed
            fan_out.failed += change.failed
            for index, item in change.changed.items():
                if item.status in NODE_MACHINE.terminal:
                    fan_out.in_flight.pop(index, None)
                else:
                    fan_out.in_flight[index] = item
                    item.stored = not item.only_sent
            if decision.nodes.get(node_id, self.nodes[node_id]).terminal:
                del self.fan_outs[node_id]


def leads_to(node: GraphNode, run: NodeRun, target: str) -> bool:
    """Whether the edge from this node to `target` was taken."""
    if run.status is NodeStatus.COMPLETED:
        return not node.branches or target in run.output["next"]
    return run.status is NodeStatus.FAILED and may_continue(node)


def may_continue(node: GraphNode) -> bool:
    return isinstance(node.definition, TaskNode) and node.definition.on_failure == "continue"


def batches(items: list[Any], size: int | None) -> list[Any]:
    """Return the items as the tasks get them: one each, or in lists of up to `size`."""
    return items if size is None else [items[start : start + size] for start in range(0, len(items), size)]


def fan_out_items(node: GraphNode, scope: Mapping[str, Any]) -> list[Any]:
    """Evaluate a fan-out's source. This is deterministic, so the next owner of the job gets the same list."""
    assert node.value is not None
    assert isinstance(node.definition, FanOutNode)
    items = node.value.render(scope)
    if not isinstance(items, list):
        raise ExpressionError(f"the source of a fan_out must be a list, not {str(items)[:80]!r}")
    return batches(items, node.definition.batch_size)


class NodesView(Mapping[str, Mapping[str, Any]]):
    """The variable `nodes` of templates: the status and error of each node and, once it has completed, its output."""

    def __init__(self, get: Callable[[str], NodeRun], names: Mapping[str, Any]) -> None:
        self._get = get
        self._names = names

    def __getitem__(self, node_id: str) -> Mapping[str, Any]:
        if node_id not in self._names:
            raise KeyError(node_id)
        run = self._get(node_id)
        entry: dict[str, Any] = {"status": run.status.value, "error": run.error or None}
        if run.status is NodeStatus.COMPLETED:
            entry["output"] = run.output
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def scope_of(run: RunState, get: Callable[[str], NodeRun]) -> dict[str, Any]:
    """Return the variables of templates."""
    workflow = run.graph.workflow
    job = {"job_id": run.job_id, "workflow_id": workflow.workflow_id, "workflow_version": workflow.version}
    return {"inputs": run.inputs, "nodes": NodesView(get, run.graph.nodes), "job": job}


def node_run(row: NodeState) -> NodeRun:
    return NodeRun(
        status=row.status,
        attempt=row.attempt,
        failures=row.retry_count,
        output=row.output,
        error=row.error_message or "",
    )


def _fan_out_run(run: RunState, node_id: str, sent: int, rows: list[NodeState]) -> FanOutRun:
    fan_out = FanOutRun(fan_out_items(run.graph.nodes[node_id], scope_of(run, run.nodes.__getitem__)))
    fan_out.next_index = sent
    stored = {row.item_index for row in rows}
    fan_out.in_flight = {index: ItemRun(NodeStatus.DISPATCHED) for index in range(sent) if index not in stored}
    for row in rows:
        if row.status is NodeStatus.COMPLETED:
            fan_out.completed += 1
        elif row.status is NodeStatus.FAILED:
            fan_out.failed += 1
        else:
            fan_out.in_flight[row.item_index] = ItemRun(row.status, row.attempt, row.retry_count, stored=True)
    return fan_out
