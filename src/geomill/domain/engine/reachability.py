"""The order of a workflow's graph, and the nodes that have certainly run when a node runs.

A node runs when all its dependencies are settled and at least one edge into it is live. An edge is live if its source
ran and, if the source is a conditional, chose it. Otherwise the node is skipped. So a node that is upstream of another
may still have no output:

    START → route ─┬─ small ─┬→ report        report may read `route`, but `small` only with a default
                   └─ large ─┘

Two sets per node answer which outputs exist. They are computed in topological order:

    implied(u)    the nodes that must run once u runs: u itself and the nodes that follow it; after a conditional only
                  those that every branch implies
    certain(y)    the nodes that have run when y runs: y itself; the nodes that are certain at all of its dependencies,
                  since any one of them may be the reason why y runs; and all ancestors of y that these imply

The sets are bits of an integer, numbered in topological order, so a step is a few machine operations per 64 nodes. A
node that fails without `on_failure: continue` fails the job, so nothing reads its output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from geomill.domain.engine.graph import incoming, targets
from geomill.domain.engine.workflow import ConditionalNode, EndNode, Node

Edges = Mapping[str, Iterable[str]]

MOST_CYCLES = 10


def outgoing(nodes: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    """Return for every node the existing nodes that may follow."""
    return {node_id: tuple(t for t in targets(node) if t in nodes) for node_id, node in nodes.items()}


def reachable(starts: Iterable[str], edges: Edges) -> set[str]:
    reached = set(starts)
    waiting = deque(reached)
    while waiting:
        for target in edges[waiting.popleft()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def topological_order(before: Edges, after: Edges) -> list[str]:
    """Return the nodes so that each comes after all its dependencies. Nodes on or after a cycle are left out."""
    missing = {node_id: len(tuple(sources)) for node_id, sources in before.items()}
    ready = deque(node_id for node_id, count in missing.items() if count == 0)
    order = []
    while ready:
        node_id = ready.popleft()
        order.append(node_id)
        for target in after[node_id]:
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)
    return order


def cycles(nodes: Mapping[str, Node]) -> list[list[str]]:
    """Return up to `MOST_CYCLES` cycles, no two of which share a node."""
    disjoint: list[list[str]] = []
    left = set(nodes)
    while len(disjoint) < MOST_CYCLES and (left := _knot(nodes, left)):
        cycle = _cycle_in(nodes, left)
        disjoint.append(cycle)
        left -= set(cycle)
    return disjoint


def _knot(nodes: Mapping[str, Node], among: set[str]) -> set[str]:
    """Return the nodes that remain when all nodes before and after the cycles are removed."""
    for _ in range(2):
        after = {n: tuple(t for t in targets(nodes[n]) if t in among) for n in nodes if n in among}
        before: dict[str, list[str]] = {n: [] for n in after}
        for node_id, followers in after.items():
            for target in followers:
                before[target].append(node_id)
        among = among - set(topological_order(before, after))
        among = among - set(topological_order(_within(after, among), _within(before, among)))
    return among


def _within(edges: Edges, among: set[str]) -> dict[str, tuple[str, ...]]:
    return {n: tuple(t for t in ends if t in among) for n, ends in edges.items() if n in among}


def _cycle_in(nodes: Mapping[str, Node], knot: set[str]) -> list[str]:
    node_id = next(n for n in nodes if n in knot)
    positions: dict[str, int] = {}
    while node_id not in positions:
        positions[node_id] = len(positions)
        node_id = next(t for t in targets(nodes[node_id]) if t in knot)
    return [n for n, position in positions.items() if position >= positions[node_id]]


@dataclass(frozen=True, slots=True)
class Upstream:
    """The nodes before one node, or before the end of the job."""

    _bits: Mapping[str, int]
    _ancestors: int
    _certain: int

    def has(self, node_id: str) -> bool:
        return bool(self._ancestors & self._bits[node_id])

    def surely_ran(self, node_id: str) -> bool:
        """Whether the other node has run whenever this one runs."""
        return bool(self._certain & self._bits[node_id])


def upstreams(nodes: Mapping[str, Node]) -> Iterator[tuple[str | None, Upstream]]:
    """Yield every node with the nodes upstream of it; last None, for the end of the job. The graph must not have a
    cycle."""
    before, after = incoming(nodes), outgoing(nodes)
    order = topological_order(before, after)
    bits = {node_id: 1 << position for position, node_id in enumerate(order)}
    implied = _implied(nodes, order, bits)
    sets = _Sets(order, bits, implied)
    waiting = {node_id: len(followers) for node_id, followers in after.items()}
    for node_id in order:
        ancestors, certain = sets.joined(before[node_id])
        sets.keep(node_id, ancestors, certain | bits[node_id])
        yield node_id, Upstream(bits, ancestors, certain | bits[node_id])
        for source in before[node_id]:
            waiting[source] -= 1
            if waiting[source] == 0:
                sets.forget(source)
    ends = [node_id for node_id in order if isinstance(nodes[node_id], EndNode)]
    yield None, Upstream(bits, *sets.joined(ends))


def _implied(nodes: Mapping[str, Node], order: list[str], bits: Mapping[str, int]) -> dict[str, int]:
    implied: dict[str, int] = {}
    for node_id in reversed(order):
        node = nodes[node_id]
        ways = [branch.next for branch in node.branches] if isinstance(node, ConditionalNode) else [targets(node)]
        every_way = (reduce(or_, (implied[target] for target in way), 0) for way in ways)
        implied[node_id] = bits[node_id] | reduce(and_, every_way)
    return implied


class _Sets:
    """The ancestors and certain nodes of each node. They are kept only while a follower still needs them."""

    def __init__(self, order: list[str], bits: Mapping[str, int], implied: Mapping[str, int]) -> None:
        self._order, self._bits, self._implied = order, bits, implied
        self._ancestors: dict[str, int] = {}
        self._certain: dict[str, int] = {}

    def keep(self, node_id: str, ancestors: int, certain: int) -> None:
        self._ancestors[node_id], self._certain[node_id] = ancestors, certain

    def forget(self, node_id: str) -> None:
        del self._ancestors[node_id], self._certain[node_id]

    def joined(self, sources: Iterable[str]) -> tuple[int, int]:
        """Return the ancestors and the certain nodes of a node with these dependencies."""
        sources = tuple(sources)
        if not sources:
            return 0, 0
        ancestors = reduce(or_, (self._ancestors[source] | self._bits[source] for source in sources))
        certain = reduce(and_, (self._certain[source] for source in sources))
        if len(sources) > 1:
            certain |= ancestors & self._all_implied(certain)
        return ancestors, certain

    def _all_implied(self, certain: int) -> int:
        """Return the union of the nodes that they imply. The earliest ones imply most of the others, which are then
        skipped."""
        union, left = 0, certain
        while left:
            earliest = self._order[(left & -left).bit_length() - 1]
            union |= self._implied[earliest]
            left &= ~union
        return union
