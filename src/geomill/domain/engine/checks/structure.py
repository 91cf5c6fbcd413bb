"""Checks the graph itself: one start, an end, existing targets, no cycle, no unreachable nodes."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.finding import Finding, Path
from geomill.domain.engine.reachability import cycles, outgoing, reachable
from geomill.domain.engine.workflow import ConditionalNode, EndNode, StartNode, Workflow
from geomill.errors import nearest

MOST_NODES = 20_000
"""Larger amounts of work should be items of a fan-out."""


def check_structure(workflow: Workflow) -> Iterator[Finding]:
    if len(workflow.nodes) > MOST_NODES:
        yield Finding(("nodes",), f"there are {len(workflow.nodes)} nodes, more than {MOST_NODES}", "use a fan_out")
        return
    yield from _terminals(workflow)
    broken = [*_targets(workflow), *_cycles(workflow)]
    yield from broken
    if not broken:  # otherwise most unreachable nodes only follow from the broken edges
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
    """Yield every target with its path in the document."""
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
            yield Finding(path, f"'{target}' is the start, and no edge may lead to it")


def _cycles(workflow: Workflow) -> Iterator[Finding]:
    for cycle in cycles(workflow.nodes):
        path = " → ".join([*cycle, cycle[0]])
        yield Finding(("nodes", cycle[0]), f"the nodes form a cycle: {path}", "remove one of the edges")


def _dead_wood(workflow: Workflow) -> Iterator[Finding]:
    """Yield a finding for each unreachable node. Every other node leads to an end, because the graph has neither a
    cycle nor a wrong target."""
    first = starts(workflow)
    reached = reachable(first, outgoing(workflow.nodes))
    for node_id in workflow.nodes:
        if first and node_id not in reached:
            yield Finding(("nodes", node_id), "no path from the start leads to this node")
