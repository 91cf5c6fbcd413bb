"""A task under way, and how it ends."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from geomill.domain.engine.message import TaskMessage
from geomill.domain.engine.task import TaskReport
from geomill.domain.jsonvalue import to_json
from geomill.queues.postgres import Delivery
from geomill.sdk.execution import Ended
from geomill.store.checkpoints import Saved
from geomill.store.inbox import Settlement
from geomill.worker.children.process import Child
from geomill.worker.notes import TaskNotes

CANCELLED = "cancelled"
"""The code of a handler that stopped because it was asked to."""


@dataclass(slots=True, eq=False)
class Slot:
    """Held for as long as its lease: a slot that cannot be freed otherwise is taken away."""

    delivery: Delivery
    message: TaskMessage
    notes: TaskNotes
    leased: float
    checkpoint: Saved | None = None
    suspect: bool = False
    """It may take down its worker (trial.py)."""
    begun: float | None = None
    task: asyncio.Task[None] | None = None
    child: Child | None = None
    told_running: bool = False
    cancelled: bool = False
    lost: bool = False
    draining: bool = False
    grace_until: float | None = None
    verdict: Ended | None = None
    forced_at: float | None = None
    closed: bool = False

    def begin(self, child: Child | None = None) -> None:
        """From here the handler's time counts."""
        self.begun = self.notes.spoke = time.monotonic()
        self.child = child
        if child and self.cancelled:
            child.tell_cancelled()

    def ask_to_stop(self, grace_until: float | None = None) -> None:
        """`ctx.cancelled` is true from now on. After the grace it is forced."""
        self.cancelled = True
        self.grace_until = grace_until
        if self.child:
            self.child.tell_cancelled()

    def lose(self, grace_until: float) -> None:
        """The task is no longer ours: cancelled, or given to somebody else."""
        if not self.lost:
            self.lost = True
            self.ask_to_stop(grace_until)

    def resume(self, delivery: Delivery) -> bool:
        """Go on under a new lease of the same message, unless the task is ending. Whoever reports it names the new
        token."""
        if self.lost or self.closed or self.forced_at is not None:
            return False
        self.delivery.lease_token, self.delivery.delivery_count = delivery.lease_token, delivery.delivery_count
        return True

    def force(self, verdict: Ended | None = None) -> None:
        """End it now, with this result or, without one, unfinished."""
        if self.forced_at is None:
            self.forced_at, self.verdict, self.cancelled = time.monotonic(), verdict, True
        if self.task:
            self.task.cancel()

    def outcome(self, ended: Ended | None) -> Settlement | None:
        """What to report of it; nothing if it is not ours any more."""
        if self.lost:
            return None
        if ended is None or (self.draining and not ended.success and ended.error_code == CANCELLED):
            return self.settlement(TaskReport.ABANDONED)
        return self.settlement(TaskReport.COMPLETED if ended.success else TaskReport.FAILED, ended)

    def settlement(self, report: TaskReport, ended: Ended | None = None) -> Settlement:
        delivery = self.delivery
        settlement = Settlement(delivery.sequence, delivery.lease_token, self.message, report, delivery.started_at)
        if ended is None:
            return settlement
        if ended.success:
            settlement.output = ended.text
        else:
            settlement.error, settlement.error_code, settlement.retryable = (
                ended.error_message,
                ended.error_code,
                ended.retryable,
            )
        if ended.metrics:
            settlement.metrics = to_json(ended.metrics)
        return settlement
