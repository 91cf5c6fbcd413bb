"""The state of one node of a job, or of one item of a fan-out node (`item_index` >= 0).

An item has no row while it is only sent; `items_sent` of its fan-out counts it. It gets a row when it has run
for a while, is retried, or has ended.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import BigInt, Check, Entity, Key, Name, Now, StateRule
from geomill.domain.ids import SINGLE
from geomill.domain.states import NODE_MACHINE, NodeStatus


class NodeState(Entity):
    __sql_table__: ClassVar = "dag_node_states"
    __sql_primary_key__: ClassVar = ("job_id", "node_id", "item_index")
    __sql_retired__: ClassVar = ("dag_node_states_job_id_fkey",)
    __sql_checks__: ClassVar = (
        Check(
            "dag_node_states_completed_at",
            "(status IN ('completed', 'failed', 'skipped', 'cancelled')) = (completed_at IS NOT NULL)",
        ),
        Check(
            "dag_node_states_dispatched_at",
            "status NOT IN ('dispatched', 'running', 'cancelled') OR dispatched_at IS NOT NULL",
        ),
        Check("dag_node_states_item_index", "item_index >= -1"),
    )
    __sql_states__: ClassVar = (StateRule("status", NODE_MACHINE),)
    __sql_storage__: ClassVar = {"fillfactor": "70"}

    job_id: Key
    node_id: Key
    item_index: int = Field(default=SINGLE, description="The position in the fan-out's list; -1 for a node")
    status: NodeStatus = NodeStatus.PENDING
    task_id: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="The task of the current attempt"
    )
    attempt: BigInt = Field(default=0, description="Token of the current attempt; it only rises")
    retry_count: int = Field(default=0, description="Attempts that counted against the retry policy")
    output: Any | None = Field(default=None, description="The value that the handler returned")
    error_message: str | None = None
    worker_id: Name | None = None
    not_before: AwareDatetime | None = Field(default=None, description="When a retry may begin")
    items_total: int | None = Field(default=None, description="The length of a fan-out's list")
    items_sent: int | None = Field(default=None, description="How many items of a fan-out were sent so far")
    dispatched_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None
    created_at: Now
    updated_at: Now
