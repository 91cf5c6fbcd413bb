"""An operator's retry of a failed or cancelled job. Completed nodes stay; all others may run again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter

from geomill.domain.engine.graph import Graph
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.run import leads_to, may_continue, node_run
from geomill.domain.engine.workflow import FanInNode, FanOutNode, TaskNode
from geomill.domain.ids import SINGLE
from geomill.domain.states import NodeStatus

_N = NodeStatus


@dataclass(frozen=True, slots=True)
class Reopened:
    """A node or item that begins again. Its attempt is new, so a late report of the old one stays stale."""

    node_id: str
    item_index: int
    status: NodeStatus
    attempt: int


def reopen(graph: Graph, rows: Iterable[NodeState]) -> list[Reopened]:
    """Return the nodes and items that begin again.

    Tasks that failed or were cancelled become ready, fan-outs go on with the items that did not complete, and the rest
    waits. Completed nodes, tolerated failures and branches that were not taken stay as they are.
    """
    rows = list(rows)
    expanded = {row.node_id for row in rows if row.item_index != SINGLE}
    settled = _settled(graph, {row.node_id: row for row in rows if row.item_index == SINGLE})
    return [
        _again(graph, row, expanded) for row in rows if row.status is not _N.COMPLETED and row.node_id not in settled
    ]


def downstream(graph: Graph, node_id: str) -> set[str]:
    """Return a node and all nodes that may run after it."""
    reached, frontier = {node_id}, [node_id]
    while frontier:
        for successor in graph.nodes[frontier.pop()].successors:
            if successor not in reached:
                reached.add(successor)
                frontier.append(successor)
    return reached


def reopen_from(
    graph: Graph, rows: Iterable[NodeState], again: Collection[str]
) -> tuple[list[Reopened], list[Reopened]]:
    """Return the nodes that begin again although they may have completed, and the other nodes and items that begin
    again as in every retry. `again` is downstream of a node. Items of its fan-outs are left out: their rows go, because
    the list may change."""
    rows = list(rows)
    reset = [row.evolve(status=_N.PENDING, completed_at=None) if row.node_id in again else row for row in rows]
    begun_again = [
        Reopened(row.node_id, SINGLE, _N.PENDING, row.attempt + 1)
        for row in rows
        if row.node_id in again and row.item_index == SINGLE
    ]
    return begun_again, [node for node in reopen(graph, reset) if node.node_id not in again]


def _settled(graph: Graph, rows: dict[str, NodeState]) -> set[str]:
    settled: set[str] = set()
    order = TopologicalSorter({node_id: node.dependencies for node_id, node in graph.nodes.items()})
    for node_id in order.static_order():
        if _is_settled(graph, rows, node_id, settled):
            settled.add(node_id)
    return settled


def _is_settled(graph: Graph, rows: dict[str, NodeState], node_id: str, settled: set[str]) -> bool:
    row, node = rows[node_id], graph.nodes[node_id]
    if row.status is _N.FAILED:
        return may_continue(node)
    if row.status is _N.SKIPPED:  # skipped by routing, or because the job ended?
        led_here = (leads_to(graph.nodes[source], node_run(rows[source]), node_id) for source in node.dependencies)
        return settled.issuperset(node.dependencies) and not any(led_here)
    return row.status is _N.COMPLETED


def _again(graph: Graph, row: NodeState, expanded: set[str]) -> Reopened:
    definition = graph.nodes[row.node_id].definition
    status = _N.PENDING
    if row.status in (_N.FAILED, _N.CANCELLED):
        if row.item_index != SINGLE or isinstance(definition, TaskNode | FanInNode):
            status = _N.READY
        elif isinstance(definition, FanOutNode) and row.node_id in expanded:
            status = _N.RUNNING
    return Reopened(row.node_id, row.item_index, status, row.attempt + 1)
