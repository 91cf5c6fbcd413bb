"""Instances: running processes of geomill. Each has one row with its heartbeat."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import BigInt, Entity, ForeignKey, Index, Json, Key, Name, Now


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
    slots: int | None = Field(default=None, description="How many tasks a worker runs at once")
    counts: Json = Field(default_factory=dict, description="Its work since its start, as of its heartbeat")
    looked_at: AwareDatetime | None = Field(default=None, description="When it last looked for work")
    started_at: Now
    heartbeat_at: Now


class InstanceHandlers(Entity):
    """The handlers that a worker has. Written at its start, and apart from the row that each heartbeat writes again."""

    __sql_table__: ClassVar = "dag_instance_handlers"
    __sql_primary_key__: ClassVar = ("instance_id",)
    __sql_foreign_keys__: ClassVar = (ForeignKey(("instance_id",), "dagapp.dag_instances", ("instance_id",)),)

    instance_id: Key
    handlers: list[str] = Field(default_factory=list, description="Names of handlers, former names included")
    versions: Json = Field(default_factory=dict, description="The code version of each handler")
