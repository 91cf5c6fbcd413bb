"""The JSON Schema of the format, for editors."""

from __future__ import annotations

from typing import Any

from geomill.domain.workflow import Workflow

SCHEMA_ID = "urn:geomill:schema:workflow:1"


def json_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **Workflow.model_json_schema(mode="validation"),
        "title": "geomill workflow",
    }
