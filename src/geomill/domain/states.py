"""The state machines, written once. The tables enforce the same rules (see `Machine.commits`).

    job     pending ─► running ─► completed | failed | cancelled
    node    pending ─► ready ─► dispatched ─► running ─► completed | failed
                 └──► skipped                              failed ─► ready (retry)
    asset   processing, approval and clearance: three independent machines (at the end of this file)

Besides these arrows a node may also
  * complete or fail straight from `ready`: start, end, conditional, fan_out and fan_in nodes run in the
    orchestrator, and a task whose parameters cannot be rendered is never dispatched;
  * complete straight from `dispatched`: the worker's "running" report is optional and may come late or never;
  * be `cancelled` if it was under way when its job ended;
and a job may fail or be found complete before anything was dispatched.

Terminal states are final for the machine. Only an operator's retry of a whole job reopens a job and the nodes that did
not complete (`reopens`). This is a step of its own, never combined with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Generic, TypeVar

from geomill.errors import IllegalTransition


class JobStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class NodeStatus(StrEnum):
    PENDING = "pending"
    READY = "ready"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class ProcessingStatus(StrEnum):
    """Whether the workflow of an asset's revision has finished."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class ApprovalState(StrEnum):
    """Whether a reviewer has decided on an asset's revision."""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"


class ClearanceState(StrEnum):
    """Who may see an asset. `uncleared` is as internal as `ouo`, but nobody has confirmed it."""

    UNCLEARED = "uncleared"
    OUO = "ouo"
    PUBLIC = "public"


State = TypeVar("State", bound=StrEnum)


@dataclass(frozen=True)
class Machine(Generic[State]):
    name: str
    steps: Mapping[State, frozenset[State]]
    terminal: frozenset[State]
    reopens: Mapping[State, frozenset[State]] = field(default_factory=dict)
    single_steps: bool = False
    """Whether a commit takes one step at most."""

    def check(self, source: State, target: State) -> None:
        """Raise `IllegalTransition` unless `target` may follow `source` in one step."""
        if target not in self.steps.get(source, ()):
            raise IllegalTransition(self.name, source, target, sorted(self.steps.get(source, ())))

    @cached_property
    def commits(self) -> Mapping[State, frozenset[State]]:
        """The transitions that a table allows in one commit: a transaction may take several legal steps at once."""
        if self.single_steps:
            return self.steps
        return {state: self._reachable(state) | self.reopens.get(state, frozenset()) for state in self.steps}

    def _reachable(self, start: State) -> frozenset[State]:
        reached: set[State] = set()
        frontier = [start]
        while frontier:
            for target in self.steps.get(frontier.pop(), frozenset()) - reached:
                reached.add(target)
                frontier.append(target)
        return frozenset(reached - {start})


_J, _N = JobStatus, NodeStatus

JOB_MACHINE = Machine(
    name="job",
    steps={
        _J.PENDING: frozenset({_J.RUNNING, _J.COMPLETED, _J.FAILED, _J.CANCELLED}),
        _J.RUNNING: frozenset({_J.COMPLETED, _J.FAILED, _J.CANCELLED}),
        _J.COMPLETED: frozenset(),
        _J.FAILED: frozenset(),
        _J.CANCELLED: frozenset(),
    },
    terminal=frozenset({_J.COMPLETED, _J.FAILED, _J.CANCELLED}),
    reopens={_J.FAILED: frozenset({_J.RUNNING}), _J.CANCELLED: frozenset({_J.RUNNING})},
)

NODE_MACHINE = Machine(
    name="node",
    steps={
        _N.PENDING: frozenset({_N.READY, _N.SKIPPED}),
        _N.READY: frozenset({_N.DISPATCHED, _N.SKIPPED, _N.COMPLETED, _N.FAILED}),
        _N.DISPATCHED: frozenset({_N.RUNNING, _N.COMPLETED, _N.FAILED, _N.CANCELLED}),
        _N.RUNNING: frozenset({_N.COMPLETED, _N.FAILED, _N.CANCELLED}),
        _N.FAILED: frozenset({_N.READY}),
        _N.COMPLETED: frozenset(),
        _N.SKIPPED: frozenset(),
        _N.CANCELLED: frozenset(),
    },
    terminal=frozenset({_N.COMPLETED, _N.FAILED, _N.SKIPPED, _N.CANCELLED}),
    reopens={
        _N.FAILED: frozenset({_N.PENDING, _N.READY, _N.RUNNING}),
        _N.CANCELLED: frozenset({_N.PENDING, _N.READY, _N.RUNNING}),
        _N.SKIPPED: frozenset({_N.PENDING}),
    },
)

_P, _A, _C = ProcessingStatus, ApprovalState, ClearanceState

PROCESSING_MACHINE = Machine(
    name="asset's processing",
    steps={
        _P.PENDING: frozenset({_P.PROCESSING, _P.FAILED}),
        _P.PROCESSING: frozenset({_P.COMPLETED, _P.FAILED, _P.PENDING}),
        _P.COMPLETED: frozenset({_P.PENDING}),
        _P.FAILED: frozenset({_P.PENDING, _P.PROCESSING}),
    },
    terminal=frozenset(),
)
"""A new revision or a retry leads back to pending."""

APPROVAL_MACHINE = Machine(
    name="asset's approval",
    steps={
        _A.PENDING_REVIEW: frozenset({_A.APPROVED, _A.REJECTED}),
        _A.APPROVED: frozenset({_A.PENDING_REVIEW, _A.REJECTED}),
        _A.REJECTED: frozenset({_A.PENDING_REVIEW}),
    },
    terminal=frozenset(),
    single_steps=True,
)
"""Only a new revision leads back to review. A revocation leads from approved to rejected."""

CLEARANCE_MACHINE = Machine(
    name="asset's clearance",
    steps={
        _C.UNCLEARED: frozenset({_C.OUO, _C.PUBLIC}),
        _C.OUO: frozenset({_C.PUBLIC, _C.UNCLEARED}),
        _C.PUBLIC: frozenset({_C.OUO, _C.UNCLEARED}),
    },
    terminal=frozenset(),
    single_steps=True,
)
"""A new revision or a revocation leads back to uncleared."""
