"""Requests and responses about workflows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from geomill.contract.inputs import ApiInput
from geomill.contract.paging import CursorPage
from geomill.domain.engine.starting import Starter

LONGEST_TEXT = 200_000

DefinitionHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


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


class WorkflowVersionView(BaseModel):
    """A definition of a workflow that jobs were pinned to."""

    model_config = ConfigDict(from_attributes=True)

    definition_hash: str
    version: int
    first_used_at: datetime
    last_used_at: datetime | None = Field(description="The newest of the counted jobs")
    recent_jobs: int = Field(description="How many of the workflow's newest 1000 jobs are pinned to it")
    current: bool = Field(
        default=False, description="Whether new jobs of this gateway's workflow would be pinned to it"
    )


class WorkflowVersionPage(CursorPage):
    versions: list[WorkflowVersionView]


class DifferenceOptions(ApiInput):
    from_: DefinitionHash = Field(alias="from", description="Hash of the earlier definition")
    to: DefinitionHash | None = Field(
        default=None, description="Hash of the later definition; default: the one that this gateway has"
    )


class DifferenceView(BaseModel):
    """The difference between two definitions of a workflow."""

    workflow_id: str
    from_hash: str
    to_hash: str
    added: list[str] = Field(description="Nodes that only the later definition has")
    removed: list[str] = Field(description="Nodes that only the earlier definition has")
    changed: list[str] = Field(description="Nodes that differ")
    other: list[str] = Field(description="Fields beside the nodes that differ, such as `inputs`")
    diff: str | None = Field(description="Unified diff of both as YAML; null if they are too long to be compared")


class WorkflowText(ApiInput):
    """The text of a workflow file."""

    text: Annotated[str, StringConstraints(max_length=LONGEST_TEXT)] = Field(description="YAML")


class WorkflowProblem(BaseModel):
    line: int
    field: str = Field(description="The place in the document; empty if the document cannot be read")
    message: str
    hint: str = ""


class WorkflowCheck(BaseModel):
    valid: bool
    problems: list[WorkflowProblem] = Field(description="At most 200")
    problem_count: int = 0
    workflow_id: str | None = Field(default=None, description="Only if the workflow is valid")
    definition_hash: str | None = Field(default=None, description="The hash to which its jobs would be pinned")
    mermaid: str | None = Field(default=None, description="The graph as a Mermaid flowchart")
