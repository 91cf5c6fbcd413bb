"""The OpenAPI document, judged by a validator that others wrote."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

from geomill.api import create_app
from geomill.settings import AccessSettings, QueueSettings
from geomill.workflows.registry import WorkflowRegistry


@cache
def document() -> dict[str, Any]:
    return create_app("", WorkflowRegistry(()), QueueSettings(), AccessSettings()).openapi()


def operations() -> list[dict[str, Any]]:
    return [operation for path in document()["paths"].values() for operation in path.values()]


def test_it_is_valid_for_the_version_that_it_names() -> None:
    assert document()["openapi"].startswith("3.1.")
    problems = OpenAPIV31SpecValidator(document()).iter_errors()
    assert [f"{'/'.join(map(str, problem.absolute_path))}: {problem.message}" for problem in problems] == []


def test_operations_have_short_ids_that_occur_once() -> None:
    identifiers = [operation["operationId"] for operation in operations()]
    assert len(set(identifiers)) == len(identifiers)
    assert [name for name in identifiers if not re.fullmatch(r"[a-z]+(_[a-z]+){0,4}", name)] == []


def test_operations_say_what_they_do_and_who_may_call_them() -> None:
    assert [operation["operationId"] for operation in operations() if not operation.get("summary")] == []
    assert [
        operation["operationId"] for operation in operations() if operation["security"] and not operation["x-roles"]
    ] == []


def test_who_submits_learns_about_the_notice_that_comes_back() -> None:
    urls = {
        operation["operationId"]: list(operation["callbacks"]["job_ended"])
        for operation in operations()
        if "callbacks" in operation
    }
    assert urls == {
        "submit_job": ["{$request.body#/callback_url}"],
        "submit_data": ["{$request.body#/callback_url}"],
        "submit_stage_job": ["{$request.query.callback_url}"],
    }
