"""The input and output of the evaluator: plain data that does not change once it is made.

Classes with hundreds of thousands of instances are not frozen, because a frozen dataclass takes three times as long to
create.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from geomill.domain.engine.graph import Execution
from geomill.domain.engine.run import ItemRun, NodeRun
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus


@dataclass(slots=True)
class Outcome:
    """A report on one attempt. With an empty node, a command for the job."""

    node_id: str
    attempt: int
    report: TaskReport
    item_index: int = SINGLE
    output: Any = None
    error: str = ""
    error_code: str = "handler_error"
    retryable: bool = True


QUIET = frozenset({NodeStatus.READY, NodeStatus.DISPATCHED, NodeStatus.RUNNING, NodeStatus.COMPLETED})
"""The states that hundreds of thousands of items reach. Such a step is only counted, unless it follows a failure."""


@dataclass(slots=True)
class Step:
    """One transition of one node or item, for the history."""

    node_id: str
    item_index: int
    source: NodeStatus
    target: NodeStatus
    detail: str = ""


@dataclass(slots=True)
class Dispatch:
    """An attempt to send to a worker."""

    node_id: str
    item_index: int
    attempt: int
    retry_count: int
    params: dict[str, Any]
    execution: Execution
    not_before: datetime | None = None


@dataclass(slots=True)
class Cancel:
    """A waiting or running attempt that is no longer needed."""

    node_id: str
    item_index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A fan-in that waits for the outputs of these nodes, in this order."""

    node_id: str
    attempt: int
    sources: tuple[str, ...]


@dataclass(slots=True)
class FanOutChange:
    """The changes of a decision to a fan-out."""

    items: list[Any]
    next_index: int
    changed: dict[int, ItemRun] = field(default_factory=dict)
    completed: int = 0
    failed: int = 0
    ended: int = 0


@dataclass(slots=True)
class Decision:
    """All changes that one evaluation makes to a job."""

    status: JobStatus
    nodes: dict[str, NodeRun] = field(default_factory=dict)
    fan_outs: dict[str, FanOutChange] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    quiet_steps: int = 0
    dispatches: list[Dispatch] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    stale: list[Outcome] = field(default_factory=list)
    closed: int = 0
    retries: int = 0
    more: bool = False
    """Whether a fan-out has room for more items than one decision sends."""
    paused: bool | None = None
    result: dict[str, Any] | None = None
    error: str = ""
    failed_node: str = ""
