"""A permit: the message of Azure Service Bus that says that one task more waits in a queue.

The task itself is a row of `dag_queue`. A worker leases at most as many tasks of a queue as it has permits, and the
database chooses which, so turns and priorities hold as they do without Service Bus (docs/decisions/099).
"""

from __future__ import annotations

from pydantic import AwareDatetime, BaseModel, ConfigDict


class Permit(BaseModel):
    """The fields say for which task the permit was sent. They help people who look into the queue; no code relies on
    them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    queue_name: str
    task_id: str
    job_id: str = ""
    node_id: str = ""
    handler: str = ""
    due_at: AwareDatetime | None = None
