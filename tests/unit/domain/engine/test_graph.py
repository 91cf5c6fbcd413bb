"""A workflow compiled for execution."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.engine.graph import branch_labels, compile_graph, incoming, targets
from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.workflow import DEFAULT_TIMEOUT_SECONDS, ConditionalNode, EndNode, Workflow

NODES: dict[str, Any] = {
    "START": {"type": "start", "next": ["a", "b", "a"]},
    "a": {"handler": "h", "params": {"x": "{{ inputs.x }}"}, "next": "route"},
    "b": {"handler": "h", "queue": "q", "timeout_seconds": 9, "dispatch_timeout_seconds": 4, "next": "END"},
    "route": {
        "type": "conditional",
        "condition_field": "{{ nodes.a.output.n }}",
        "branches": [
            {"default": True, "next": ["END", "many"]},
            {"condition": "< 5", "next": ["many"]},
            {"condition": "< 9", "next": "many"},
        ],
    },
    "many": {
        "type": "fan_out",
        "source": [1, 2],
        "task": {"handler": "h", "params": {"i": "{{ item }}"}},
        "next": "all",
    },
    "all": {"type": "fan_in", "next": ["END"]},
    "END": {"type": "end"},
}


def workflow(**changes: Any) -> Workflow:
    return Workflow.model_validate({"workflow_id": "w", "name": "W", "nodes": NODES, **changes})


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [("START", ("a", "b")), ("a", ("route",)), ("route", ("END", "many")), ("many", ("all",)), ("END", ())],
)
def test_targets_are_each_named_once(node_id: str, expected: tuple[str, ...]) -> None:
    assert targets(workflow().nodes[node_id]) == expected


def test_incoming_are_in_the_order_of_the_file() -> None:
    assert incoming(workflow().nodes) == {
        "START": (),
        "a": ("START",),
        "b": ("START",),
        "route": ("a",),
        "many": ("route",),
        "all": ("many",),
        "END": ("b", "route", "all"),
    }


def test_a_target_that_does_not_exist_is_left_to_the_checks() -> None:
    nodes = workflow(nodes={"START": {"type": "start", "next": "nowhere"}, "END": {"type": "end"}}).nodes
    assert incoming(nodes) == {"START": (), "END": ()}


def test_edges_lead_both_ways() -> None:
    graph = compile_graph(workflow())
    for node_id, node in graph.nodes.items():
        assert all(node_id in graph.nodes[target].dependencies for target in node.successors)
        assert all(node_id in graph.nodes[source].successors for source in node.dependencies)
    assert (graph.start, graph.ends) == ("START", ("END",))


def test_a_task_has_defaults_and_compiled_parameters() -> None:
    execution = compile_graph(workflow()).nodes["a"].execution
    assert execution is not None
    assert (execution.handler, execution.queue) == ("h", LIGHT_QUEUE)
    assert (execution.timeout_seconds, execution.dispatch_timeout_seconds) == (DEFAULT_TIMEOUT_SECONDS, None)
    assert execution.params.render({"inputs": {"x": [1]}}) == {"x": [1]}


def test_a_task_keeps_its_own_queue_and_times() -> None:
    execution = compile_graph(workflow()).nodes["b"].execution
    assert execution is not None
    assert (execution.queue, execution.timeout_seconds, execution.dispatch_timeout_seconds) == ("q", 9, 4)


def test_a_fan_out_has_a_source_and_the_execution_of_its_task() -> None:
    node = compile_graph(workflow()).nodes["many"]
    assert node.value is not None
    assert node.execution is not None
    assert node.value.render({}) == [1, 2]
    assert node.execution.params.render({"item": 7}) == {"i": 7}


def test_the_default_branch_is_asked_last_and_the_others_in_order() -> None:
    branches = compile_graph(workflow()).nodes["route"].branches
    assert [branch.condition.source if branch.condition else None for branch in branches] == ["< 5", "< 9", None]
    assert branches[-1].targets == {"END", "many"}


def test_the_result_comes_from_the_nodes_before_an_end() -> None:
    assert compile_graph(workflow()).result_nodes() == ("b", "route", "all")


def test_outputs_are_compiled_if_there_are_any() -> None:
    assert compile_graph(workflow()).outputs is None
    outputs = compile_graph(workflow(outputs={"n": "{{ inputs.n }}"})).outputs
    assert outputs is not None
    assert outputs.render({"inputs": {"n": 1}}) == {"n": 1}


def test_the_hash_is_that_of_the_meaning() -> None:
    first = compile_graph(workflow())
    assert first.definition_hash == workflow().hash()
    assert Workflow.model_validate(first.workflow.body()).hash() == first.definition_hash
    rewritten = {node_id: dict(reversed(node.items())) for node_id, node in NODES.items()}
    assert workflow(nodes=rewritten).hash() == first.definition_hash
    reordered = dict(reversed(NODES.items()))  # a fan_in collects in the order of the nodes
    assert workflow(nodes=reordered).hash() != first.definition_hash
    spelled = {**NODES, "a": {**NODES["a"], "type": "task", "next": ["route"], "retry": {"max_attempts": 3}}}
    assert workflow(nodes=spelled).hash() == first.definition_hash


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"name": "V"}, {"outputs": {}}, {"nodes": {**NODES, "X": {"type": "end"}}}]
)
def test_every_change_changes_the_hash(change: dict[str, Any]) -> None:
    assert workflow(**change).hash() != workflow().hash()


def test_branches_of_a_conditional_are_named_by_name_or_condition() -> None:
    branches = [
        {"name": "small", "condition": "< 10", "next": ["a", "b"]},
        {"condition": "< 20", "next": "b"},
        {"default": True, "next": "c"},
    ]
    node = ConditionalNode.model_validate({"type": "conditional", "condition_field": 1, "branches": branches})
    assert branch_labels(node) == {"a": "small", "b": "small or < 20", "c": "otherwise"}
    assert branch_labels(EndNode(type="end")) == {}
