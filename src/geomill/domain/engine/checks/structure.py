"""The graph as such: one start, an end, targets that exist, no cycle, no dead wood."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.finding import Finding, Path
from geomill.domain.engine.reachability import cycles, outgoing, reachable
from geomill.domain.engine.workflow import ConditionalNode, EndNode, StartNode, Workflow
from geomill.errors import nearest

MOST_NODES = 20_000
"""Larger amounts of work are a fan-out's items, not nodes."""


def check_structure(workflow: Workflow) -> Iterator[Finding]:
    if len(workflow.nodes) > MOST_NODES:
        yield Finding(("nodes",), f"there are {len(workflow.nodes)} nodes, more than {MOST_NODES}", "use a fan_out")
        return
    yield from _terminals(workflow)
    broken = [*_targets(workflow), *_cycles(workflow)]
    yield from broken
    if not broken:  # otherwise most of it follows from the broken edges
        yield from _dead_wood(workflow)


def starts(workflow: Workflow) -> list[str]:
    return [node_id for node_id, node in workflow.nodes.items() if isinstance(node, StartNode)]


def ends(workflow: Workflow) -> list[str]:
    return [node_id for node_id, node in workflow.nodes.items() if isinstance(node, EndNode)]


def _terminals(workflow: Workflow) -> Iterator[Finding]:
    first = starts(workflow)
    if not first:
        yield Finding(("nodes",), "there is no start node", "add one with 'type: start'")
    for extra in first[1:]:
        names = ", ".join(first)
        yield Finding(("nodes", extra), f"there are {len(first)} start nodes: {names}", "keep one, with a list as next")
    if not ends(workflow):
        yield Finding(("nodes",), "there is no end node", "add one with 'type: end'")


def edges(workflow: Workflow) -> Iterator[tuple[Path, str]]:
    """Every target with its place in the file."""
    for node_id, node in workflow.nodes.items():
        if isinstance(node, ConditionalNode):
            for position, branch in enumerate(node.branches):
                yield from ((("nodes", node_id, "branches", position, "next", i), t) for i, t in enumerate(branch.next))
        elif not isinstance(node, EndNode):
            yield from ((("nodes", node_id, "next", i), target) for i, target in enumerate(node.next))


def _targets(workflow: Workflow) -> Iterator[Finding]:
    for path, target in edges(workflow):
        if target not in workflow.nodes:
            yield Finding(path, f"there is no node '{target}'", nearest(target, workflow.nodes))
        elif isinstance(workflow.nodes[target], StartNode):
            yield Finding(path, f"'{target}' is the start, nothing leads to it")


def _cycles(workflow: Workflow) -> Iterator[Finding]:
    for cycle in cycles(workflow.nodes):
        path = " → ".join([*cycle, cycle[0]])
        yield Finding(("nodes", cycle[0]), f"the nodes form a cycle: {path}", "a workflow only goes forward")


def _dead_wood(workflow: Workflow) -> Iterator[Finding]:
    """Nodes that cannot be reached. From all others an end is: only a cycle or a wrong target could prevent it."""
    first = starts(workflow)
    reached = reachable(first, outgoing(workflow.nodes))
    for node_id in workflow.nodes:
        if first and node_id not in reached:
            yield Finding(("nodes", node_id), "no path from the start leads to this node")
