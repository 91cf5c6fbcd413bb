"""The difference of two jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class BeforeAndAfter(BaseModel):
    """A value in the first job and in the second."""

    before: Any = None
    after: Any = None


class ValueChange(BaseModel):
    """A named value that differs. A long value is cut and ends with `…`."""

    name: str
    change: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None


class NodeDifference(BaseModel):
    """A node whose state, error or output differs."""

    node_id: str
    status: BeforeAndAfter
    run_seconds: BeforeAndAfter
    error: BeforeAndAfter
    output_changed: bool
    outputs: list[ValueChange] = Field(description="The keys of the output that differ, at most twenty")


class JobDifference(BaseModel):
    job_id: str
    other_job_id: str
    workflow_id: BeforeAndAfter
    definition_hash: BeforeAndAfter
    same_definition: bool
    status: BeforeAndAfter
    run_seconds: BeforeAndAfter
    inputs: list[ValueChange]
    results: list[ValueChange] = Field(description="The keys of the result that differ, at most twenty")
    nodes: list[NodeDifference] = Field(description="The nodes that differ, at most 500")
    more: bool = Field(description="Whether there are more differences than are listed")
