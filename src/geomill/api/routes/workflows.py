"""Routes of workflows."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse

from geomill.api import cursors
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.paging import PageOptions
from geomill.contract.workflows import (
    DifferenceOptions,
    DifferenceView,
    WorkflowCheck,
    WorkflowDetails,
    WorkflowSummary,
    WorkflowText,
    WorkflowVersionPage,
    WorkflowVersionView,
)
from geomill.domain.engine.workflow import Workflow
from geomill.errors import NotFoundError
from geomill.remedies import LIST_VERSIONS, SHOW_WORKFLOW
from geomill.store import definitions
from geomill.store.pool import Connection
from geomill.workflows.difference import difference
from geomill.workflows.mermaid import to_mermaid
from geomill.workflows.schema import inputs_schema, json_schema

router = APIRouter(prefix="/api/v1", tags=["workflows"])

COUNTED_JOBS = 1000
"""The newest jobs of a workflow that are counted by definition."""
WorkflowInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.get("/workflows", summary="List the workflows")
async def list_workflows(gateway: TheGateway) -> list[WorkflowSummary]:
    return [WorkflowSummary(**_summary(workflow)) for workflow in gateway.workflow_registry.all()]


@router.get("/workflows/{workflow_id}", summary="Get a workflow", responses=problem_responses(404))
async def get_workflow(gateway: TheGateway, workflow_id: str) -> WorkflowDetails:
    workflow = gateway.workflow_registry.get(workflow_id)
    return WorkflowDetails(
        **_summary(workflow),
        definition=workflow.body(),
        definition_hash=workflow.hash(),
        inputs_schema=inputs_schema(workflow),
        mermaid=to_mermaid(workflow),
    )


@router.post("/workflows/validate", summary="Check the text of a workflow file")
async def validate_workflow(gateway: TheGateway, source: WorkflowText) -> WorkflowCheck:
    """Returns all problems with their lines, by the handlers and queues that this gateway knows. Nothing is stored."""
    return await gateway.workflow_checks.check(source.text)


@router.get(
    "/workflows/{workflow_id}/versions",
    summary="List the definitions of a workflow that jobs have had",
    responses=problem_responses(404, 503),
)
async def list_workflow_versions(
    gateway: TheGateway, workflow_id: WorkflowInPath, options: Annotated[PageOptions, Query()]
) -> WorkflowVersionPage:
    """A workflow that was removed since still has its versions."""
    before = cursors.decode(options.cursor) if options.cursor else None
    async with gateway.connection() as conn:
        versions = await definitions.versions(
            conn, workflow_id, limit=options.limit + 1, sample=COUNTED_JOBS, before=before
        )
    if not versions and before is None:
        gateway.workflow_registry.get(workflow_id)  # raises if there is no such workflow
    current = _current_hash(gateway, workflow_id)
    page, more = versions[: options.limit], len(versions) > options.limit
    return WorkflowVersionPage(
        versions=[
            WorkflowVersionView(**asdict(version), current=version.definition_hash == current) for version in page
        ],
        next_cursor=cursors.encode(page[-1].first_used_at, page[-1].definition_hash) if more else None,
    )


@router.get(
    "/workflows/{workflow_id}/source",
    summary="Get the file of a workflow",
    response_class=PlainTextResponse,
    responses=problem_responses(404),
)
async def get_workflow_source(gateway: TheGateway, workflow_id: WorkflowInPath) -> str:
    """Returns the YAML text, with its comments, as it was when this gateway began."""
    gateway.workflow_registry.get(workflow_id)
    source = gateway.workflow_registry.source(workflow_id)
    if source is None:
        raise NotFoundError(
            f"the workflow '{workflow_id}' has no file, because it was compiled from a stage job",
            remedy=SHOW_WORKFLOW.http,
        )
    return source


@router.get(
    "/workflows/{workflow_id}/difference",
    summary="Compare two definitions of a workflow",
    responses=problem_responses(404, 503),
)
async def get_workflow_difference(
    gateway: TheGateway, workflow_id: WorkflowInPath, options: Annotated[DifferenceOptions, Query()]
) -> DifferenceView:
    """Returns the nodes that were added, removed and changed, and a unified diff of both definitions as YAML."""
    to_hash = options.to or gateway.workflow_registry.get(workflow_id).hash()
    async with gateway.connection() as conn:
        before = await _definition(conn, gateway, workflow_id, options.from_)
        after = await _definition(conn, gateway, workflow_id, to_hash)
    differences = await asyncio.to_thread(difference, before, after)
    return DifferenceView(workflow_id=workflow_id, from_hash=options.from_, to_hash=to_hash, **asdict(differences))


async def _definition(conn: Connection, gateway: Gateway, workflow_id: str, definition_hash: str) -> dict[str, Any]:
    """Return a definition of the workflow: one that jobs have had, or the present one of this gateway."""
    stored = await definitions.find(conn, definition_hash)
    if stored and stored.workflow_id == workflow_id:
        return stored.body
    workflow = gateway.workflow_registry.find(workflow_id)
    if workflow and workflow.hash() == definition_hash:
        return workflow.body()
    raise NotFoundError(
        f"the workflow '{workflow_id}' has no definition {definition_hash}",
        remedy=LIST_VERSIONS.http,
    )


def _current_hash(gateway: Gateway, workflow_id: str) -> str | None:
    workflow = gateway.workflow_registry.find(workflow_id)
    return workflow.hash() if workflow else None


@router.get("/workflows-schema", summary="Get the JSON Schema of workflow files")
async def get_schema() -> dict[str, Any]:
    return json_schema()


def _summary(workflow: Workflow) -> dict[str, Any]:
    return {
        "workflow_id": workflow.workflow_id,
        "name": workflow.name,
        "version": workflow.version,
        "description": workflow.description,
        "started_by": workflow.started_by,
        "inputs": {
            name: declaration.model_dump(mode="json", exclude_none=True)
            for name, declaration in workflow.inputs.items()
        },
    }
