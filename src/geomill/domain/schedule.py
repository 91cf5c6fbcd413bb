"""When a workflow starts by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Check, Entity, Index, Json, Key, Name, Now


class CatchUp(StrEnum):
    """What to do with firings that nobody was there to make."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Schedule(Entity):
    __sql_table__: ClassVar = "dag_schedules"
    __sql_primary_key__: ClassVar = ("schedule_id",)
    __sql_indexes__: ClassVar = (Index("idx_dag_schedules_due", ("next_due_at",), where="NOT paused"),)
    __sql_checks__: ClassVar = (
        Check("dag_schedules_timing", "(cron IS NULL) <> (interval_seconds IS NULL)"),
        Check("dag_schedules_interval", "interval_seconds > 0"),
        Check("dag_schedules_concurrent", "max_concurrent >= 1"),
    )

    schedule_id: Key
    workflow_id: Key
    input_params: Json = Field(default_factory=dict)
    cron: Annotated[str, Field(max_length=128)] | None = None
    interval_seconds: int | None = None
    timezone: Name = "UTC"
    catch_up: CatchUp = CatchUp.LAST
    max_concurrent: int = 1
    paused: bool = False
    next_due_at: AwareDatetime | None = None
    last_fired_at: AwareDatetime | None = None
    created_at: Now
    updated_at: Now
