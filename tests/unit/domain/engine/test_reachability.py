"""The nodes that are certain to have run, checked against every choice of every conditional."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.domain.engine.graph import incoming, targets
from geomill.domain.engine.reachability import Upstream, cycles, outgoing, reachable, topological_order, upstreams
from geomill.domain.engine.workflow import ConditionalNode, EndNode, Workflow

thorough = settings(max_examples=400, deadline=None)


def workflow(nodes: dict[str, Any]) -> Workflow:
    return Workflow.model_validate({"workflow_id": "w", "name": "w", "nodes": nodes})


def task(*following: str) -> dict[str, Any]:
    return {"handler": "echo", "next": list(following)}


def choice(*ways: tuple[str, ...] | str) -> dict[str, Any]:
    branches = [{"condition": "== 1", "next": [way] if isinstance(way, str) else list(way)} for way in ways]
    return {"type": "conditional", "condition_field": 1, "branches": branches}


@st.composite
def graphs(draw: st.DrawFn, conditionals: bool = True) -> Workflow:
    """A random graph without cycles. Edges go from lower to higher numbers; the last node is an end."""
    size = draw(st.integers(2, 8))
    nodes: dict[str, Any] = {}
    for number in range(size):
        later = st.lists(st.integers(number + 1, size), min_size=1, max_size=3, unique=True)
        if number and conditionals and draw(st.booleans()):
            ways = draw(st.lists(later, min_size=1, max_size=3))
            nodes[f"n{number}"] = choice(*(tuple(f"n{n}" for n in way) for way in ways))
        else:
            kind = {"type": "start"} if number == 0 else {"handler": "echo"}
            nodes[f"n{number}"] = {**kind, "next": [f"n{n}" for n in draw(later)]}
    nodes[f"n{size}"] = {"type": "end"}
    graph = workflow(nodes)
    from_start = reachable(["n0"], outgoing(graph.nodes))
    return workflow({name: node for name, node in nodes.items() if name in from_start})


def worlds(graph: Workflow) -> list[set[str]]:
    """Return, for every outcome of every conditional, the nodes that run."""
    order = topological_order(incoming(graph.nodes), outgoing(graph.nodes))
    choices = {n: node.branches for n, node in graph.nodes.items() if isinstance(node, ConditionalNode)}
    played = []
    for combination in product(*choices.values()):
        chosen = dict(zip(choices, combination, strict=True))
        live: set[str] = {order[0]}
        for node_id in order:
            if node_id in live:
                live.update(chosen[node_id].next if node_id in chosen else targets(graph.nodes[node_id]))
        played.append(live)
    return played


def certain(graph: Workflow, where: str | None) -> set[str]:
    return {n for n in graph.nodes if dict(upstreams(graph.nodes))[where].surely_ran(n)}


@thorough
@given(graphs())
@pytest.mark.slow
def test_what_is_certain_has_run_in_every_world(graph: Workflow) -> None:
    played = worlds(graph)
    for where, upstream in upstreams(graph.nodes):
        for node_id in graph.nodes:
            if upstream.surely_ran(node_id):
                assert all(node_id in world for world in played if where is None or where in world)


@thorough
@given(graphs(conditionals=False))
def test_without_conditionals_all_that_is_upstream_is_certain(graph: Workflow) -> None:
    for where, upstream in upstreams(graph.nodes):
        for node_id in graph.nodes:
            assert upstream.surely_ran(node_id) is (upstream.has(node_id) or node_id == where)


@thorough
@given(graphs())
def test_what_runs_in_every_world_is_mostly_known_at_the_end(graph: Workflow) -> None:
    """Complete for a node alone in its place: whatever every path passes."""
    at_the_end = certain(graph, None)
    ends = [n for n, node in graph.nodes.items() if isinstance(node, EndNode)]
    for node_id in graph.nodes:
        without = {n: [t for t in after if t != node_id] for n, after in outgoing(graph.nodes).items()}
        if node_id not in ends and not set(ends) & reachable({"n0"} - {node_id}, without):
            assert node_id in at_the_end


@thorough
@given(graphs())
def test_upstream_is_reachability(graph: Workflow) -> None:
    after = outgoing(graph.nodes)
    for where, upstream in upstreams(graph.nodes):
        for node_id in graph.nodes:
            if where is not None:
                assert upstream.has(node_id) is (node_id != where and where in reachable([node_id], after))


def test_both_branches_are_uncertain_where_they_meet() -> None:
    graph = workflow(
        {
            "S": {"type": "start", "next": "c"},
            "c": choice("a", "b"),
            "a": task("j"),
            "b": task("j"),
            "j": task("E"),
            "E": {"type": "end"},
        }
    )
    assert certain(graph, "j") == {"S", "c", "j"}
    assert certain(graph, "a") == {"S", "c", "a"}
    assert certain(graph, None) == {"S", "c", "j", "E"}


def test_parallel_paths_inside_a_branch_are_certain_where_they_meet() -> None:
    graph = workflow(
        {
            "S": {"type": "start", "next": "c"},
            "c": choice("a", "E"),
            "a": task("x", "y"),
            "x": task("j"),
            "y": task("j"),
            "j": task("E"),
            "E": {"type": "end"},
        }
    )
    assert certain(graph, "j") == {"S", "c", "a", "x", "y", "j"}
    assert certain(graph, None) == {"S", "c", "E"}


def test_a_join_beside_another_path_is_certain() -> None:
    """Neither branch is certain, but the node to which both lead is."""
    graph = workflow(
        {
            "S": {"type": "start", "next": ["c", "other"]},
            "c": choice("a", "b"),
            "a": task("merge"),
            "b": task("merge"),
            "merge": task("publish"),
            "other": task("publish"),
            "publish": task("E"),
            "E": {"type": "end"},
        }
    )
    assert certain(graph, "publish") == {"S", "c", "merge", "other", "publish"}


def test_a_conditional_whose_branches_all_lead_there() -> None:
    graph = workflow(
        {
            "S": {"type": "start", "next": ["c", "other"]},
            "c": choice(("a", "b"), "a"),
            "a": task("j"),
            "b": task("j"),
            "other": task("j"),
            "j": task("E"),
            "E": {"type": "end"},
        }
    )
    assert certain(graph, "j") == {"S", "c", "a", "other", "j"}


def test_cycles_are_found_apart_from_what_leads_to_them() -> None:
    graph = workflow(
        {
            "S": {"type": "start", "next": "a"},
            "a": task("b"),
            "b": task("c"),
            "c": task("b", "d"),
            "d": task("d", "E"),
            "E": {"type": "end"},
        }
    )
    assert cycles(graph.nodes) == [["b", "c"], ["d"]]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), min_size=1), min_size=1))
def test_a_graph_has_a_cycle_or_an_order(edges: dict[str, list[str]]) -> None:
    graph = workflow({name: task(*following) for name, following in edges.items()})
    order = topological_order(incoming(graph.nodes), outgoing(graph.nodes))
    assert bool(cycles(graph.nodes)) is (len(order) < len(graph.nodes))
    for cycle in cycles(graph.nodes):
        for source, target in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert target in targets(graph.nodes[source])


def test_an_empty_upstream() -> None:
    first: tuple[str | None, Upstream] = next(iter(upstreams(workflow({"E": {"type": "end"}}).nodes)))
    assert first[0] == "E"
    assert not first[1].has("E")
