"""Routes of workflows."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.domain.engine.starting import Starter
from geomill.domain.engine.workflow import Workflow
from geomill.workflows.mermaid import to_mermaid
from geomill.workflows.schema import inputs_schema, json_schema

router = APIRouter(prefix="/api/v1", tags=["workflows"])


class WorkflowSummary(BaseModel):
    workflow_id: str
    name: str
    version: int
    description: str | None
    started_by: Starter = Field(
        description="Who may start it: partners whose platform lists it, operators, or geomill itself"
    )
    inputs: dict[str, Any] = Field(description="Inputs as the workflow file declares them")


class WorkflowDetails(WorkflowSummary):
    definition: dict[str, Any] = Field(description="The definition with every default written out")
    definition_hash: str = Field(description="The hash to which jobs are pinned")
    inputs_schema: dict[str, Any] = Field(description="JSON Schema of `input_params`")
    mermaid: str = Field(description="The graph as a Mermaid flowchart")


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
