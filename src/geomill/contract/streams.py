"""What streams send about assets and instances."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from geomill.domain.assets.asset import Asset
from geomill.domain.engine.instance import Instance


class WaitingAsset(BaseModel):
    """An asset that waits for a reviewer."""

    asset_id: str
    platform_id: str
    platform_refs: dict[str, Any]
    data_type: str
    revision: int
    proposed_clearance: str | None
    priority: int
    workflow_id: str | None
    processing_completed_at: datetime | None
    warnings: list[str]
    created_at: datetime

    @classmethod
    def of(cls, asset: Asset) -> Self:
        fields = asset.model_dump()
        return cls(**{name: fields[name] for name in cls.model_fields})


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
