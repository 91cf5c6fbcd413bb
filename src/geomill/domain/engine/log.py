"""Log lines of handlers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import BigInt, Entity, ForeignKey, Identity, Index, Key, Name, Now
from geomill.domain.ids import SINGLE

LONGEST_LINE = 500
MOST_LINES = 200
"""The maximum number of lines of one attempt. Nobody reads more."""


class TaskLog(Entity):
    """A line of a handler's log. Rows are only added. They are not fenced: a line stays true after the attempt has lost
    its lease."""

    __sql_table__: ClassVar = "dag_task_logs"
    __sql_primary_key__: ClassVar = ("log_id",)
    __sql_foreign_keys__: ClassVar = (ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",)),)
    __sql_indexes__: ClassVar = (
        Index("idx_dag_task_logs_job", ("job_id", "log_id")),
        Index("idx_dag_task_logs_place", ("job_id", "node_id", "item_index", "log_id")),
    )

    log_id: Identity
    job_id: Key
    node_id: Key
    item_index: int = SINGLE
    attempt: BigInt
    level: Name
    message: Annotated[str, Field(max_length=LONGEST_LINE)]
    created_at: Now
