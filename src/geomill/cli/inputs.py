"""A job's inputs from the command line: a JSON file, and single values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from geomill.domain.engine.inputs import parse_input_text
from geomill.domain.engine.workflow import Workflow
from geomill.errors import InputsError, nearest


def inputs_from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputsError(
            f"--inputs {path} cannot be read: {error}", remedy="give a file with one JSON object"
        ) from error
    if not isinstance(found, dict):
        raise InputsError(f"--inputs {path} holds {type(found).__name__}, not an object of inputs")
    return found


def inputs_from_options(workflow: Workflow, options: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise InputsError(f"--input {option!r} has no '='", remedy="write --input NAME=VALUE")
        definition = workflow.inputs.get(name)
        if definition is None:
            raise InputsError(f"{workflow.workflow_id} has no input '{name}'", remedy=nearest(name, workflow.inputs))
        found[name] = parse_input_text(definition, text, name=f"the input '{name}'")
    return found
