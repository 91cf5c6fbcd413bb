"""The JSON Schema for editors says what the models say."""

from __future__ import annotations

from geomill.domain.engine.workflow import Workflow
from geomill.workflows.schema import json_schema
from geomill.workflows.schema_problems import NODE_TYPES


def test_it_names_itself() -> None:
    schema = json_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["$id"].startswith("urn:")
    assert schema["title"] == "geomill workflow"


def test_it_has_every_key_and_refuses_others() -> None:
    schema = json_schema()
    assert schema["properties"].keys() == Workflow.model_fields.keys()
    assert schema["required"] == ["workflow_id", "name", "nodes"]
    assert schema["additionalProperties"] is False
    for model in NODE_TYPES.values():
        definition = schema["$defs"][model.__name__]
        assert definition["properties"].keys() == model.model_fields.keys()
        assert definition["additionalProperties"] is False


def test_next_is_a_name_or_a_list() -> None:
    spelled = json_schema()["$defs"]["StartNode"]["properties"]["next"]
    assert {option["type"] for option in spelled["anyOf"]} == {"string", "array"}
