"""Turns the steps of a decision into events. Items of a fan-out have events only for failures, retries and cancels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from geomill.domain.engine.decision import Decision, Step
from geomill.domain.engine.event import EventStatus, EventType
from geomill.domain.engine.run import RunState
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus, NodeStatus
from geomill.store.events import EventWrite
from geomill.store.inbox import Arrival

Place = tuple[str, int]
"""Node and item."""

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


def events(run: RunState, decision: Decision, arrivals: Mapping[Place, Arrival]) -> Iterator[EventWrite]:
    """Yield the events of a decision. `arrivals` are the reports that led to it."""
    job_id, before = run.job_id, run.status
    if before is JobStatus.PENDING and decision.status is not JobStatus.PENDING:
        yield EventWrite(job_id, *_JOB[JobStatus.RUNNING])
    retried = {(s.node_id, s.item_index) for s in decision.steps if s.source is NodeStatus.FAILED}
    for step in decision.steps:
        place = (step.node_id, step.item_index)
        event = _event(job_id, step, retried=place in retried)
        if event:
            event.data = _data(run, decision, step, arrivals.get(place))
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
    return EventWrite(job_id, kind, status, step.node_id, step.item_index)


def _data(run: RunState, decision: Decision, step: Step, arrival: Arrival | None) -> dict[str, Any] | None:
    """Return the data of a step's event: detail, attempt, queue, worker and error code, as far as the step has them. A
    node that runs in the orchestrator has no attempt."""
    data: dict[str, Any] = {"detail": step.detail} if step.detail else {}
    execution = run.graph.nodes[step.node_id].execution
    if execution is None or (step.item_index == SINGLE and step.node_id in decision.fan_outs):
        return data or None
    if step.target is NodeStatus.DISPATCHED:
        data["attempt"], data["queue"] = _attempt(run, decision, step), execution.queue
    elif arrival:
        outcome = next(
            (o for o in arrival.outcomes if (o.node_id, o.item_index) == (step.node_id, step.item_index)), None
        )
        data["attempt"] = outcome.attempt if outcome else _attempt(run, decision, step)
        if arrival.worker_id:
            data["worker"] = arrival.worker_id
        if outcome and step.target is not NodeStatus.COMPLETED:
            data |= {"queue": execution.queue, "error_code": outcome.error_code}
    elif attempt := _attempt(run, decision, step):
        data["attempt"] = attempt
    return data or None


def _attempt(run: RunState, decision: Decision, step: Step) -> int:
    """Return the attempt of the step's node or item after the decision."""
    if step.item_index == SINGLE:
        return decision.nodes.get(step.node_id, run.nodes[step.node_id]).attempt
    change = decision.fan_outs.get(step.node_id)
    item = change.changed.get(step.item_index) if change else None
    return item.attempt if item else 0
