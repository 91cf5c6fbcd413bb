"""Workflows, the schema and the description of the API itself."""

from __future__ import annotations

from httpx import AsyncClient

from geomill.sql import schema_sql


async def test_workflows(idle: AsyncClient) -> None:
    listed = (await idle.get("/api/v1/workflows")).json()
    assert "hello_world" in [workflow["workflow_id"] for workflow in listed]
    workflow = (await idle.get("/api/v1/workflows/echo_test")).json()
    assert workflow["mermaid"].startswith("flowchart TD")
    assert set(workflow["definition"]["nodes"]) == {"START", "echo", "END"}
    count = workflow["inputs_schema"]["properties"]["count"]
    assert count | {"type": "integer", "minimum": 0, "default": 1} == count
    assert (await idle.get("/api/v1/workflows-schema")).json()["title"] == "geomill workflow"


async def test_the_schema_as_sql(idle: AsyncClient) -> None:
    answer = await idle.get("/api/v1/bootstrap/ddl")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == schema_sql()


async def test_the_api_describes_itself(idle: AsyncClient) -> None:
    described = (await idle.get("/openapi.json")).json()
    operations = [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 18
    for path, method, operation in operations:
        assert operation["tags"], (method, path)
        assert operation["summary"], (method, path)
        assert set(operation["responses"]["422"]["content"]) == {"application/problem+json"}, (method, path)
    assert {"ProblemDocument", "FieldProblem"} <= set(described["components"]["schemas"])
    assert "HTTPValidationError" not in described["components"]["schemas"]
    assert (await idle.get("/docs")).status_code == 200
