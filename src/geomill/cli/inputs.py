"""Reads a job's inputs from the command line: from a JSON file and from single values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geomill.contract.workflows import WorkflowSummary
from geomill.domain.engine.inputs import parse_input_text
from geomill.domain.engine.workflow import InputDefinition
from geomill.errors import InputsError, nearest


def inputs_from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        inputs = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputsError(
            f"--inputs {path} cannot be read: {error}", remedy="give a file with one JSON object"
        ) from error
    if not isinstance(inputs, dict):
        raise InputsError(
            f"--inputs {path} contains a JSON {type(inputs).__name__}, not an object",
            remedy="write a JSON object with one member for each input",
        )
    return inputs


def typed_inputs(workflow: WorkflowSummary, options: list[str]) -> dict[str, Any]:
    """Parse options by the inputs that the gateway says a workflow has."""
    definitions = {name: InputDefinition.model_validate(declared) for name, declared in workflow.inputs.items()}
    return inputs_from_options(workflow.workflow_id, definitions, options)


def inputs_from_options(
    workflow_id: str, definitions: Mapping[str, InputDefinition], options: list[str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise InputsError(f"--input {option!r} has no '='", remedy="write --input NAME=VALUE")
        definition = definitions.get(name)
        if definition is None:
            raise InputsError(f"{workflow_id} has no input '{name}'", remedy=nearest(name, definitions))
        values[name] = parse_input_text(definition, text, name=f"the input '{name}'")
    return values
