"""Instances: running processes of geomill. Each has one row with its heartbeat."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import BigInt, Entity, Index, Json, Key, Name, Now


class InstanceRole(StrEnum):
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"


class Instance(Entity):
    __sql_table__: ClassVar = "dag_instances"
    __sql_primary_key__: ClassVar = ("instance_id",)
    __sql_indexes__: ClassVar = (Index("idx_dag_instances_role", ("role", "heartbeat_at DESC")),)
    __log_fields__: ClassVar = ("instance_id", "role")

    instance_id: Key
    role: InstanceRole
    hostname: Annotated[str, Field(max_length=255)]
    pid: int
    lock_key: BigInt = Field(description="Advisory lock that the process holds while it lives")
    version: Name
    queues: list[str] = Field(default_factory=list, description="The queues that it serves")
    duties: Json = Field(default_factory=dict, description="The last error of each duty that ever failed")
    started_at: Now
    heartbeat_at: Now
