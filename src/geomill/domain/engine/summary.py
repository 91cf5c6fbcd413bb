"""The progress of a job in a few numbers."""

from __future__ import annotations

from typing import Any

from geomill.domain.engine.decision import Decision
from geomill.domain.engine.run import RunState
from geomill.domain.states import NodeStatus

_UNDER_WAY = (NodeStatus.READY, NodeStatus.DISPATCHED, NodeStatus.RUNNING)


def summary(run: RunState, decision: Decision) -> dict[str, Any]:
    """Return `{total, completed, failed, current_node, fraction}` of the state after the decision."""
    nodes = {**run.nodes, **decision.nodes}
    ended = sum(node.terminal for node in nodes.values())
    return {
        "total": len(nodes),
        "completed": sum(node.status is NodeStatus.COMPLETED for node in nodes.values()),
        "failed": sum(node.status is NodeStatus.FAILED for node in nodes.values()),
        "current_node": next((name for name, node in nodes.items() if node.status in _UNDER_WAY), None),
        "fraction": round((ended + _inside(run, decision)) / len(nodes), 4),
    }


def _inside(run: RunState, decision: Decision) -> float:
    """Return the completed share of the fan-outs under way, counted in nodes."""
    share = 0.0
    for node_id, fan_out in run.fan_outs.items():
        if not decision.nodes.get(node_id, run.nodes[node_id]).terminal and fan_out.items:
            change = decision.fan_outs.get(node_id)
            more = change.completed + change.failed if change else 0
            share += (fan_out.completed + fan_out.failed + more) / len(fan_out.items)
    return share
