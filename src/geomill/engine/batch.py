"""Turns the decisions of one round into the rows to write, for many jobs at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

from geomill.domain.engine.decision import Cancel, Decision, Dispatch, FanOutChange
from geomill.domain.engine.graph import Execution
from geomill.domain.engine.run import ItemRun, NodeRun
from geomill.domain.engine.summary import summary
from geomill.domain.ids import SINGLE, around_index, task_id
from geomill.domain.states import JOB_MACHINE, NodeStatus
from geomill.engine.history import Place, events
from geomill.engine.owned import OwnedJob
from geomill.store.inbox import Arrival
from geomill.store.rounds import Completed, JobWrite, MessageWrite, NodeWrite, Spread, SummaryWrite, Writes

SUMMARY_SECONDS = 1.0


class RoundBatch(Writes):
    def add_new(self, job: OwnedJob, decision: Decision) -> None:
        """Add a job's first decision. Its nodes have no rows yet; the caller writes the row of the job."""
        dispatches = _by_place(decision)
        for node_id, before in job.run.nodes.items():
            after, change = decision.nodes.get(node_id, before), decision.fan_outs.get(node_id)
            self.inserts.append(_node_write(job.job_id, node_id, after, change, dispatches.get((node_id, SINGLE))))
        self._add_common(job, decision, dispatches, {})

    def add(self, job: OwnedJob, decision: Decision, arrivals: Mapping[Place, Arrival]) -> None:
        dispatches = _by_place(decision)
        for node_id in decision.nodes.keys() | decision.fan_outs.keys():
            before, change = job.run.nodes[node_id], decision.fan_outs.get(node_id)
            after = decision.nodes.get(node_id, before)
            if _differs(before, after) or (change and change.next_index > _sent(job, node_id)):
                place = (node_id, SINGLE)
                write = _node_write(job.job_id, node_id, after, change, dispatches.get(place), arrivals.get(place))
                self.updates.append(write)
        if decision.status is not job.run.status or decision.paused not in (None, job.run.paused):
            verdict = job_write(job.job_id, decision)
            if job.has_asset and decision.status in JOB_MACHINE.terminal:
                verdict.summary = summary(job.run, decision)
            self.jobs.append(verdict)
        elif job.has_asset and decision.nodes:
            self._summarise(job, decision)
        self._add_common(job, decision, dispatches, arrivals)

    def _summarise(self, job: OwnedJob, decision: Decision) -> None:
        """Add the progress of a job at most once a second, so that thousands of tasks do not each write the asset's
        row."""
        now = time.monotonic()
        if now - job.summarised_at >= SUMMARY_SECONDS:
            job.summarised_at = now
            self.summaries.append(SummaryWrite(job.job_id, summary(job.run, decision)))

    def _add_common(
        self,
        job: OwnedJob,
        decision: Decision,
        dispatches: Mapping[Place, Dispatch],
        arrivals: Mapping[Place, Arrival],
    ) -> None:
        spread: set[Place] = set()
        for node_id, change in decision.fan_outs.items():
            spread |= self._add_items(job, node_id, change, dispatches, arrivals)
        self.messages += [_message(job, dispatch) for place, dispatch in dispatches.items() if place not in spread]
        self.withdrawals += [_withdrawal(job, cancel) for cancel in decision.cancels]
        self.events += events(job.run, decision, arrivals)

    def _add_items(
        self,
        job: OwnedJob,
        node_id: str,
        change: FanOutChange,
        dispatches: Mapping[Place, Dispatch],
        arrivals: Mapping[Place, Arrival],
    ) -> AbstractSet[Place]:
        """Add changed items. First dispatches and completions, the usual cases, are written in groups. Returns the
        places of the items that are dispatched in a group."""
        completed: dict[tuple[int, datetime | None], Completed] = {}
        spread: dict[Place, Dispatch] = {}
        for index, item in change.changed.items():
            place = (node_id, index)
            dispatch, arrival = dispatches.get(place), arrivals.get(place)
            if item.status is NodeStatus.COMPLETED and arrival and not item.stored:
                key = (arrival.sequence, item.sent_at)
                group = completed.get(key) or completed.setdefault(key, _completed(job.job_id, node_id, item, arrival))
                group.items.append(index)
            elif dispatch and item.only_sent:
                spread[place] = dispatch
            else:
                self.items.append(_item_write(job.job_id, place, item, dispatch, arrival))
        self.completed += completed.values()
        if spread:
            self.spread.append(_spread(job, list(spread.values())))
        return spread.keys()


def _by_place(decision: Decision) -> dict[Place, Dispatch]:
    return {(dispatch.node_id, dispatch.item_index): dispatch for dispatch in decision.dispatches}


def _sent(job: OwnedJob, node_id: str) -> int:
    """Return how many items of a fan-out were sent before this decision."""
    return job.run.fan_outs[node_id].next_index if node_id in job.run.fan_outs else 0


def _withdrawal(job: OwnedJob, cancel: Cancel) -> tuple[str, str]:
    execution = job.run.graph.nodes[cancel.node_id].execution
    assert execution is not None
    return execution.queue, task_id(job.job_id, cancel.node_id, cancel.item_index, cancel.attempt)


def _differs(before: NodeRun, after: NodeRun) -> bool:
    """Whether the row changes. The count of open dependencies is not stored, because it follows from other rows."""
    return (before.status, before.attempt, before.failures) != (after.status, after.attempt, after.failures)


def _node_write(
    job_id: str,
    node_id: str,
    run: NodeRun,
    change: FanOutChange | None,
    dispatch: Dispatch | None,
    arrival: Arrival | None = None,
) -> NodeWrite:
    return NodeWrite(
        job_id=job_id,
        node_id=node_id,
        item_index=SINGLE,
        status=run.status,
        task_id=task_id(job_id, node_id, SINGLE, run.attempt) if run.attempt else None,
        attempt=run.attempt,
        retry_count=run.failures,
        output=arrival.stored if arrival and arrival.stored else run.output,
        error_message=run.error or None,
        not_before=dispatch.not_before if dispatch else None,
        worker_id=arrival.worker_id if arrival else None,
        started_at=arrival.started_at if arrival else None,
        items_total=len(change.items) if change else None,
        items_sent=change.next_index if change else None,
    )


def _item_write(
    job_id: str, place: Place, item: ItemRun, dispatch: Dispatch | None, arrival: Arrival | None
) -> NodeWrite:
    node_id, index = place
    return NodeWrite(
        job_id=job_id,
        node_id=node_id,
        item_index=index,
        status=item.status,
        task_id=task_id(job_id, node_id, index, item.attempt),
        attempt=item.attempt,
        retry_count=item.failures,
        error_message=item.error or None,
        not_before=dispatch.not_before if dispatch else None,
        worker_id=arrival.worker_id if arrival else None,
        dispatched_at=item.sent_at,
        started_at=arrival.started_at if arrival else None,
    )


def _completed(job_id: str, node_id: str, item: ItemRun, arrival: Arrival) -> Completed:
    return Completed(
        job_id,
        node_id,
        item.attempt,
        *around_index(job_id, node_id, item.attempt),
        arrival.worker_id,
        item.sent_at,
        arrival.started_at,
    )


def _message(job: OwnedJob, dispatch: Dispatch) -> MessageWrite:
    identity = task_id(job.job_id, dispatch.node_id, dispatch.item_index, dispatch.attempt)
    execution = dispatch.execution
    own = {"task_id": identity, "item_index": dispatch.item_index, "params": dispatch.params}
    body = _common_body(job, dispatch) | own
    ttl = execution.dispatch_timeout_seconds
    return MessageWrite(execution.queue, identity, body, job.priority, job.tenant, dispatch.not_before, ttl)


def _spread(job: OwnedJob, dispatches: Sequence[Dispatch]) -> Spread:
    """Return one write for first attempts at items of a fan-out, which differ only in index and parameters."""
    first = dispatches[0]
    execution = first.execution
    return Spread(
        execution.queue,
        job.priority,
        job.tenant,
        execution.dispatch_timeout_seconds,
        *around_index(job.job_id, first.node_id, first.attempt),
        body=_common_body(job, first),
        items=[dispatch.item_index for dispatch in dispatches],
        params=[dispatch.params for dispatch in dispatches],
    )


def _common_body(job: OwnedJob, dispatch: Dispatch) -> dict[str, Any]:
    """Return the fields of a `TaskMessage` that the items of a fan-out have in common."""
    execution = dispatch.execution
    return {
        "job_id": job.job_id,
        "node_id": dispatch.node_id,
        "handler": execution.handler,
        "timeout_seconds": execution.timeout_seconds,
        "retry_count": dispatch.retry_count,
        "attempt": dispatch.attempt,
        **_optional_fields(execution),
    }


def _optional_fields(execution: Execution) -> dict[str, Any]:
    """Return the fields that few tasks have. They are left out of the messages of all others."""
    fields: dict[str, Any] = {}
    if execution.progress_timeout_seconds:
        fields["progress_timeout_seconds"] = execution.progress_timeout_seconds
    if execution.circuit_breaker:
        fields["circuit_breaker"] = execution.circuit_breaker.model_dump()
    return fields


def job_write(job_id: str, decision: Decision) -> JobWrite:
    ended = decision.status in JOB_MACHINE.terminal
    return JobWrite(
        job_id,
        decision.status,
        decision.result if ended else None,
        decision.error or None,
        decision.failed_node or None,
        decision.paused,
    )
