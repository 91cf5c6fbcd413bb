"""A submission: a partner's order to publish data. Each of its forms has the fields of this model.

HTTP body (`contract/submissions.py`) ─► `Submission` ─► `NewRequest` ─► row of app.platform_requests (`request.py`)
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from geomill.domain.assets.asset import NORMAL_ASSET_PRIORITY, DataType
from geomill.domain.assets.platform import PlatformId, Refs
from geomill.domain.entity import Json, Key, Name, SmallInt
from geomill.domain.states import ClearanceState


class Submission(BaseModel):
    """An order to publish data, as its submitter wrote it."""

    model_config = ConfigDict(frozen=True)

    platform_id: PlatformId
    platform_refs: Refs
    data_type: DataType
    container_name: Annotated[str, Field(max_length=200)]
    file_names: list[str] = Field(default_factory=list)
    overwrite: bool = False
    workflow_id: Key | None = None
    processing_options: Json = Field(default_factory=dict)
    metadata: Json | None = Field(default=None, description="Title, licence, providers and the like, of the revision")
    clearance_level: ClearanceState | None = None
    priority: Annotated[SmallInt, Field(ge=1, le=10)] = NORMAL_ASSET_PRIORITY
    callback_url: Annotated[str, Field(max_length=512)] | None = None
    correlation_id: Name | None = None
    idempotency_key: Name | None = None
