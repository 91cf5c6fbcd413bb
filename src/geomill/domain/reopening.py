"""An operator's retry of a job that failed or was cancelled: what completed stays, everything else may run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from geomill.domain.graph import Graph
from geomill.domain.ids import SINGLE
from geomill.domain.node import NodeState
from geomill.domain.states import NodeStatus
from geomill.domain.workflow import FanInNode, FanOutNode, TaskNode

_N = NodeStatus


@dataclass(frozen=True, slots=True)
class Reopened:
    """A node or item as it begins again. Its attempt is new: a late result of the old one stays stale."""

    node_id: str
    item_index: int
    status: NodeStatus
    attempt: int


def reopen(graph: Graph, rows: Iterable[NodeState]) -> list[Reopened]:
    """Tasks that ended badly are ready again, fan-outs go on with the items that did not complete, the rest waits.

    Items that a completed fan-out tolerated stay as they are.
    """
    rows = list(rows)
    expanded = {row.node_id for row in rows if row.item_index != SINGLE}
    settled = {row.node_id for row in rows if row.item_index == SINGLE and row.status is _N.COMPLETED}
    return [
        _again(graph, row, expanded) for row in rows if row.status is not _N.COMPLETED and row.node_id not in settled
    ]


def _again(graph: Graph, row: NodeState, expanded: set[str]) -> Reopened:
    definition = graph.nodes[row.node_id].definition
    status = _N.PENDING
    if row.status in (_N.FAILED, _N.CANCELLED):
        if row.item_index != SINGLE or isinstance(definition, TaskNode | FanInNode):
            status = _N.READY
        elif isinstance(definition, FanOutNode) and row.node_id in expanded:
            status = _N.RUNNING
    return Reopened(row.node_id, row.item_index, status, row.attempt + 1)
