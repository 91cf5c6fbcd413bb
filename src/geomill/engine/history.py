"""Turns the steps of a decision into events. Items of a fan-out have events only for failures, retries and cancels."""

from __future__ import annotations

from collections.abc import Iterator

from geomill.domain.engine.decision import Decision, Step
from geomill.domain.engine.event import EventStatus, EventType
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus
from geomill.store.events import EventWrite

_NODE: dict[NodeStatus, tuple[EventType, EventStatus]] = {
    NodeStatus.DISPATCHED: (EventType.NODE_DISPATCHED, EventStatus.INFO),
    NodeStatus.COMPLETED: (EventType.NODE_COMPLETED, EventStatus.SUCCESS),
    NodeStatus.FAILED: (EventType.NODE_FAILED, EventStatus.FAILURE),
    NodeStatus.SKIPPED: (EventType.NODE_SKIPPED, EventStatus.INFO),
    NodeStatus.CANCELLED: (EventType.NODE_CANCELLED, EventStatus.WARNING),
}
_JOB: dict[JobStatus, tuple[EventType, EventStatus]] = {
    JobStatus.RUNNING: (EventType.JOB_STARTED, EventStatus.INFO),
    JobStatus.COMPLETED: (EventType.JOB_COMPLETED, EventStatus.SUCCESS),
    JobStatus.FAILED: (EventType.JOB_FAILED, EventStatus.FAILURE),
    JobStatus.CANCELLED: (EventType.JOB_CANCELLED, EventStatus.WARNING),
}


def events(job_id: str, before: JobStatus, decision: Decision) -> Iterator[EventWrite]:
    if before is JobStatus.PENDING and decision.status is not JobStatus.PENDING:
        yield EventWrite(job_id, *_JOB[JobStatus.RUNNING])
    retried = {(s.node_id, s.item_index) for s in decision.steps if s.source is NodeStatus.FAILED}
    for step in decision.steps:
        event = _event(job_id, step, retried=(step.node_id, step.item_index) in retried)
        if event:
            yield event
    for outcome in decision.stale:
        yield EventWrite(
            job_id, EventType.RESULT_STALE, EventStatus.WARNING, outcome.node_id, outcome.item_index,
            {"attempt": outcome.attempt, "report": outcome.report.value},
        )  # fmt: skip
    if decision.paused is not None:
        yield EventWrite(job_id, EventType.JOB_PAUSED if decision.paused else EventType.JOB_RESUMED)
    if decision.status is not before and decision.status is not JobStatus.RUNNING:
        kind, status = _JOB[decision.status]
        yield EventWrite(job_id, kind, status, data={"error": decision.error} if decision.error else None)


def _event(job_id: str, step: Step, *, retried: bool) -> EventWrite | None:
    if step.source is NodeStatus.FAILED:
        kind, status = EventType.NODE_RETRIED, EventStatus.WARNING
    elif step.target is NodeStatus.RUNNING and step.item_index == SINGLE and step.detail:
        kind, status = EventType.FAN_OUT_EXPANDED, EventStatus.INFO
    elif step.target in _NODE and not (step.target is NodeStatus.FAILED and retried):
        kind, status = _NODE[step.target]
    else:
        return None
    if step.item_index != SINGLE and status in (EventStatus.INFO, EventStatus.SUCCESS):
        return None
    return EventWrite(
        job_id, kind, status, step.node_id, step.item_index, {"detail": step.detail} if step.detail else None
    )
