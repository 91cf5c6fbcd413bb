"""Slots: tasks under way in a worker, and how they end."""

from __future__ import annotations

import asyncio
import logging
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
"""The error code of a handler that stopped because it was asked to."""
CODE_CHANGED = "the code of this handler has changed since the previous attempt: %s before, %s now"


@dataclass(slots=True, eq=False)
class Slot:
    """A worker's place for one running task. If its handler cannot be ended, the slot is freed without it."""

    delivery: Delivery
    message: TaskMessage
    notes: TaskNotes
    leased: float
    checkpoint: Saved | None = None
    suspect: bool = False
    """Whether the task may take down its worker (trial.py)."""
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
    version: str | None = None
    """The code version of the handler that runs."""
    version_before: str | None = None
    """The code version that ran in the previous attempt, if that ended."""

    def begin(self, version: str | None, child: Child | None = None) -> None:
        """Record that the handler begins. Its time limit counts from here."""
        self.version = version
        if self.version_before and version and self.version_before != version:
            self.notes.line(logging.WARNING, CODE_CHANGED % (self.version_before, version))
        self.begun = self.notes.spoke = time.monotonic()
        self.child = child
        if child and self.cancelled:
            child.tell_cancelled()

    def ask_to_stop(self, grace_until: float | None = None) -> None:
        """Set `ctx.cancelled`. After `grace_until` the handler is forced to end."""
        self.cancelled = True
        self.grace_until = grace_until
        if self.child:
            self.child.tell_cancelled()

    def lose(self, grace_until: float) -> None:
        """Record that the lease is lost: the task was cancelled or given to another worker."""
        if not self.lost:
            self.lost = True
            self.ask_to_stop(grace_until)

    def resume(self, delivery: Delivery) -> bool:
        """Continue under a new lease of the same message. Returns False if the task is ending. Its report will have the
        new token."""
        if self.lost or self.closed or self.forced_at is not None:
            return False
        self.delivery.lease_token, self.delivery.delivery_count = delivery.lease_token, delivery.delivery_count
        return True

    def force(self, verdict: Ended | None = None) -> None:
        """End the task now, with this result or, without one, unfinished."""
        if self.forced_at is None:
            self.forced_at, self.verdict, self.cancelled = time.monotonic(), verdict, True
        if self.task:
            self.task.cancel()

    def outcome(self, ended: Ended | None) -> Settlement | None:
        """Return the report on the task, or None if its lease is lost."""
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
        settlement.handler_version = self.version
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
