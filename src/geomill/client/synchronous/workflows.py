# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on workflows."""

from __future__ import annotations

from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.workflows import (
    DifferenceView,
    WorkflowCheck,
    WorkflowDetails,
    WorkflowSummary,
    WorkflowVersionPage,
)


class WorkflowOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def all(self) -> list[WorkflowSummary]:
        return self._connection.get(list[WorkflowSummary], "/api/v1/workflows")

    def get(self, workflow_id: str) -> WorkflowDetails:
        return self._connection.get(WorkflowDetails, path("/api/v1/workflows/{}", workflow_id))

    def source(self, workflow_id: str) -> str:
        """Return the YAML text of a workflow's file."""
        return self._connection.get(str, path("/api/v1/workflows/{}/source", workflow_id))

    def versions(self, workflow_id: str, **options: Any) -> WorkflowVersionPage:
        """Return the definitions that jobs of a workflow have had."""
        return self._connection.get(WorkflowVersionPage, path("/api/v1/workflows/{}/versions", workflow_id), **options)

    def difference(self, workflow_id: str, from_hash: str, to_hash: str | None = None) -> DifferenceView:
        """Compare two definitions of a workflow. Without `to_hash`, the later one is that of the gateway."""
        hashes = {"from": from_hash, "to": to_hash}
        return self._connection.get(DifferenceView, path("/api/v1/workflows/{}/difference", workflow_id), **hashes)

    def validate(self, text: str) -> WorkflowCheck:
        """Check the text of a workflow file. Nothing is stored."""
        return self._connection.post(WorkflowCheck, "/api/v1/workflows/validate", {"text": text})

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of workflow files."""
        return self._connection.get(dict[str, Any], "/api/v1/workflows-schema")
