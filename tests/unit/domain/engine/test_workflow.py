"""The format's models: what they accept, and that the stored body gives the same workflow again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from geomill.domain.engine.workflow import InputDefinition, TaskNode, Tolerate, Workflow
from tests.unit.domain.engine.simulation import workflows


def workflow(**node: Any) -> Workflow:
    nodes = {"S": {"type": "start", "next": "n"}, "n": node, "E": {"type": "end"}}
    return Workflow.model_validate({"workflow_id": "w", "name": "w", "nodes": nodes})


def test_a_node_without_a_type_is_a_task() -> None:
    assert isinstance(workflow(handler="echo", next="E").nodes["n"], TaskNode)


def test_next_is_one_or_many() -> None:
    assert workflow(handler="echo", next="E") == workflow(handler="echo", next=["E"])


@pytest.mark.parametrize("following", [[], "", "a b", ["E", 5], None])
def test_next_names_nodes(following: Any) -> None:
    with pytest.raises(ValidationError):
        workflow(handler="echo", next=following)


@pytest.mark.parametrize(
    ("spelled", "limit"),
    [("tolerate: 5%", 10), ("tolerate: 3", 3), ({"tolerate": "2.5%"}, 5), ({"tolerate": 7}, 7)],
)
def test_tolerances(spelled: Any, limit: float) -> None:
    node = workflow(type="fan_out", source=[], task={"handler": "echo"}, next="E", on_failure=spelled).nodes["n"]
    tolerance = getattr(node, "on_failure", None)
    assert isinstance(tolerance, Tolerate)
    assert tolerance.limit(200) == limit


@pytest.mark.parametrize("spelled", ["never", "tolerate:", {"tolerate": "-5"}, {"tolerate": "all"}, {}])
def test_tolerances_that_are_none(spelled: Any) -> None:
    with pytest.raises(ValidationError):
        workflow(type="fan_out", source=[], task={"handler": "echo"}, next="E", on_failure=spelled)


@pytest.mark.parametrize(
    ("definition", "required"),
    [
        ({}, True),
        ({"required": True}, True),
        ({"required": False}, False),
        ({"default": "x"}, False),
        ({"default": None}, False),
        ({"required": True, "default": "x"}, False),
    ],
)
def test_which_inputs_are_required(definition: dict[str, Any], required: bool) -> None:
    assert InputDefinition.model_validate(definition).is_required is required


def test_the_body_keeps_nulls_in_values() -> None:
    definition = workflow(handler="echo", next="E", params={"a": None, "b": {"c": None}})
    assert definition.body()["nodes"]["n"]["params"] == {"a": None, "b": {"c": None}}


def test_the_hash_depends_on_content_not_on_spelling() -> None:
    short = workflow(handler="echo", next="E")
    spelled_out = workflow(type="task", handler="echo", params={}, next=["E"], on_failure="fail")
    assert short.hash() == spelled_out.hash()
    assert short.hash() != workflow(handler="sleep", next="E").hash()


@given(workflows())
def test_the_body_gives_the_same_workflow_again(definition: Workflow) -> None:
    again = Workflow.model_validate(definition.body())
    assert again == definition
    assert again.hash() == definition.hash()


def test_workflows_do_not_change() -> None:
    with pytest.raises(ValidationError):
        workflow(handler="echo", next="E").name = "other"
