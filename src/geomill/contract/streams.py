"""Events of streams about assets and instances."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints, field_validator

from geomill.contract.inputs import ApiInput
from geomill.domain.engine.instance import Instance

Topic = Annotated[str, StringConstraints(pattern=r"^(jobs|instances|reviews|job:[^\x00]{1,64})$")]


class StreamTopics(ApiInput):
    """The kinds of events in one stream."""

    topic: Annotated[list[Topic], Field(min_length=1, max_length=4)] = Field(
        description="`jobs`, `instances`, `reviews`, or `job:ID`; repeat it for several, with one job at most"
    )

    @field_validator("topic")
    @classmethod
    def _each_once(cls, topics: list[str]) -> list[str]:
        names = [topic.partition(":")[0] for topic in topics]
        if len(set(names)) < len(names):
            raise ValueError("each topic can be named once, and one job")
        return topics


class WaitingAsset(BaseModel):
    """An asset that waits for a reviewer."""

    asset_id: str
    platform_id: str
    platform_refs: dict[str, Any]
    data_type: str
    stac_item_id: str
    title: str | None = Field(description="The title that the submitter gave")
    revision: int
    public_revision: int | None = Field(description="The revision that everybody sees meanwhile")
    proposed_clearance: str | None
    priority: int
    workflow_id: str | None
    processing_completed_at: datetime | None
    warnings: list[str]
    created_at: datetime


class InstanceState(BaseModel):
    """A process of geomill, with its latest heartbeat."""

    instance_id: str
    role: str
    hostname: str
    pid: int
    version: str
    queues: list[str]
    started_at: datetime
    heartbeat_at: datetime

    @classmethod
    def of(cls, instance: Instance) -> Self:
        fields = instance.model_dump()
        return cls(**{name: fields[name] for name in cls.model_fields})
