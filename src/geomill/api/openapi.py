"""Completes the OpenAPI document: what FastAPI does not know, or says in words of a later version of the standard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi.routing import APIRoute

from geomill.contract.notices import JobEnded

STREAM = "text/event-stream"
NOTIFYING = ("submit_job", "submit_data", "submit_stage_job")
"""The operations that take a `callback_url`."""
_REFERENCE = "#/components/schemas/{model}"


def operation_id(route: APIRoute) -> str:
    """Return a short and stable id: the name of the function."""
    return route.name


def complete(document: dict[str, Any]) -> None:
    for operation in _operations(document):
        for response in operation["responses"].values():
            _describe_stream(response)
        if operation["operationId"] in NOTIFYING:
            operation["callbacks"] = {"job_ended": {_callback_url(operation): {"post": _notice()}}}
    schema = JobEnded.model_json_schema(ref_template=_REFERENCE)
    document["components"]["schemas"]["JobEnded"] = schema


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _describe_stream(response: dict[str, Any]) -> None:
    """Describe a stream as text: OpenAPI 3.1 has no word for the events of a stream, and FastAPI uses that of 3.2."""
    if STREAM in response.get("content", {}):
        response["content"][STREAM] = {"schema": {"type": "string", "description": "Server-sent events"}}


def _callback_url(operation: dict[str, Any]) -> str:
    """Return the expression for the address: a stage job takes it in the query, because its body is its parameters."""
    in_query = any(parameter["name"] == "callback_url" for parameter in operation.get("parameters", ()))
    return "{$request.query.callback_url}" if in_query else "{$request.body#/callback_url}"


def _notice() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": _REFERENCE.format(model="JobEnded")}}}
    return {
        "summary": "The job has ended",
        "description": "Sent again until it is answered with a status from 200 to 299, for a day.",
        "requestBody": {"required": True, "content": content},
        "responses": {"2XX": {"description": "The notice was received"}},
    }
