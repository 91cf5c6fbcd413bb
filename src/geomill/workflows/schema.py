"""The JSON Schema of the format, for editors."""

from __future__ import annotations

from typing import Any

from geomill.domain.engine.workflow import InputDefinition, Workflow

SCHEMA_ID = "urn:geomill:schema:workflow:1"


def json_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **Workflow.model_json_schema(mode="validation"),
        "title": "geomill workflow",
    }


def inputs_schema(workflow: Workflow) -> dict[str, Any]:
    """The JSON Schema of a job's inputs, for forms."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": workflow.name,
        "type": "object",
        "properties": {name: _input_schema(definition) for name, definition in workflow.inputs.items()},
        "required": [name for name, definition in workflow.inputs.items() if definition.is_required],
        "additionalProperties": False,
    }


def _input_schema(definition: InputDefinition) -> dict[str, Any]:
    length = "Items" if definition.type == "array" else "Length"
    nullable = not definition.is_required and definition.default is None
    found = {
        "type": [definition.type, "null"] if nullable else definition.type,
        "description": definition.description,
        "enum": list(definition.enum) if definition.enum else None,
        "minimum": definition.minimum,
        "maximum": definition.maximum,
        f"min{length}": definition.min_length,
        f"max{length}": definition.max_length,
        "pattern": definition.pattern,
        "default": definition.default,
    }
    return {key: value for key, value in found.items() if value is not None}
