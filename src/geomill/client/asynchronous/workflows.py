"""Operations on workflows."""

from __future__ import annotations

from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.workflows import (
    DifferenceView,
    WorkflowCheck,
    WorkflowDetails,
    WorkflowSummary,
    WorkflowVersionPage,
)


class AsyncWorkflowOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def all(self) -> list[WorkflowSummary]:
        return await self._connection.get(list[WorkflowSummary], "/api/v1/workflows")

    async def get(self, workflow_id: str) -> WorkflowDetails:
        return await self._connection.get(WorkflowDetails, path("/api/v1/workflows/{}", workflow_id))

    async def source(self, workflow_id: str) -> str:
        """Return the YAML text of a workflow's file."""
        return await self._connection.get(str, path("/api/v1/workflows/{}/source", workflow_id))

    async def versions(self, workflow_id: str, **options: Any) -> WorkflowVersionPage:
        """Return the definitions that jobs of a workflow have had."""
        return await self._connection.get(
            WorkflowVersionPage, path("/api/v1/workflows/{}/versions", workflow_id), **options
        )

    async def difference(self, workflow_id: str, from_hash: str, to_hash: str | None = None) -> DifferenceView:
        """Compare two definitions of a workflow. Without `to_hash`, the later one is that of the gateway."""
        hashes = {"from": from_hash, "to": to_hash}
        return await self._connection.get(
            DifferenceView, path("/api/v1/workflows/{}/difference", workflow_id), **hashes
        )

    async def validate(self, text: str) -> WorkflowCheck:
        """Check the text of a workflow file. Nothing is stored."""
        return await self._connection.post(WorkflowCheck, "/api/v1/workflows/validate", {"text": text})

    async def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of workflow files."""
        return await self._connection.get(dict[str, Any], "/api/v1/workflows-schema")
