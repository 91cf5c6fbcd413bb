"""Views of nodes and of items of fan-outs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from geomill.api import cursors, rendering
from geomill.contract.jobs import seconds_between
from geomill.contract.nodes import (
    AttemptView,
    CheckpointView,
    ItemBucket,
    ItemFilters,
    ItemOrder,
    ItemPage,
    ItemSummary,
    ItemView,
    LeaseView,
    NodeDetails,
    RunTimesView,
)
from geomill.domain.engine.graph import Graph, GraphNode
from geomill.domain.engine.job import Job
from geomill.domain.engine.node import NodeState
from geomill.domain.engine.task import AttemptResult, TaskStatus
from geomill.domain.ids import SINGLE
from geomill.domain.states import NODE_MACHINE, NodeStatus
from geomill.errors import InputError, Problem
from geomill.store import node_views
from geomill.store.node_views import ExpandedFanOut, ItemState, TaskDelivery
from geomill.store.pool import Connection

FEW = 5


@dataclass(frozen=True, slots=True)
class JobNode:
    """A node of a job, as the definition has it and as its row has it."""

    job: Job
    graph: Graph
    node: GraphNode
    row: NodeState

    @property
    def queue(self) -> str | None:
        return self.node.execution.queue if self.node.execution else None


async def node_details(conn: Connection, place: JobNode, now: datetime) -> NodeDetails:
    """Return a node with its attempts, its checkpoint and the parameters of its current attempt."""
    row = place.row
    delivery = await node_views.delivery(conn, place.queue, row.task_id) if place.queue and row.task_id else None
    status = row.status.value
    if row.status is NodeStatus.DISPATCHED and delivery and delivery.leased:
        status = NodeStatus.RUNNING.value
    state = ItemState(
        item_index=row.item_index,
        status=status,
        attempt=row.attempt,
        retry_count=row.retry_count,
        task_id=row.task_id or "",
        worker_id=row.worker_id,
        handler_version=None,
        dispatched_at=row.dispatched_at,
        started_at=row.started_at or (delivery.started_at if delivery else None),
        completed_at=row.completed_at,
        not_before=row.not_before,
        error_message=row.error_message,
        error_code=None,
        progress=delivery.progress if delivery else None,
        progress_message=delivery.progress_message if delivery else "",
    )
    return await _details(conn, place, state, delivery, now)


async def item_details(conn: Connection, place: JobNode, state: ItemState, now: datetime) -> NodeDetails:
    """Return an item of a fan-out in the form of a node."""
    delivery = await node_views.delivery(conn, place.queue, state.task_id) if place.queue else None
    return await _details(conn, place, state, delivery, now)


async def _details(
    conn: Connection, place: JobNode, state: ItemState, delivery: TaskDelivery | None, now: datetime
) -> NodeDetails:
    job_id, node_id, index = place.job.job_id, place.node.node_id, state.item_index
    attempts = await node_views.attempts(conn, job_id, node_id, index, state.attempt)
    checkpoint = await node_views.checkpoint(conn, job_id, node_id, index)
    latest = attempts[0] if attempts and attempts[0].attempt == state.attempt else None
    params, source = await _params(conn, place, state, delivery)
    view = item_view(state, now)
    return NodeDetails(
        **view.model_dump(exclude={"index", "error_code", "worker_id", "handler_version", "task_id"}),
        job_id=job_id,
        node_id=node_id,
        index=None if index == SINGLE else index,
        type=place.node.definition.type,
        handler=place.node.execution.handler if place.node.execution else None,
        queue=place.queue,
        task_id=state.task_id or None,
        worker_id=state.worker_id or (delivery.leased_by if delivery else None),
        handler_version=latest.handler_version if latest else None,
        params=params,
        params_source=source,
        output=_output(place.row if index == SINGLE else None, latest),
        error_code=latest.error_code if latest else state.error_code,
        metrics=latest.metrics if latest else {},
        items_total=place.row.items_total if index == SINGLE else None,
        items_sent=place.row.items_sent if index == SINGLE else None,
        lease=_lease(delivery) if delivery else None,
        checkpoint=CheckpointView(**checkpoint.model_dump(include=set(CheckpointView.model_fields)))
        if checkpoint
        else None,
        attempts=[_attempt(result) for result in attempts],
    )


def _output(row: NodeState | None, latest: AttemptResult | None) -> Any:
    """Return the output of a node from its row, and that of an item from its result."""
    if row is not None:
        return row.output
    return latest.output if latest and latest.status is TaskStatus.COMPLETED else None


async def _params(conn: Connection, place: JobNode, state: ItemState, delivery: TaskDelivery | None) -> tuple[Any, Any]:
    """Return the parameters of the current attempt and where they are from. The node of a fan-out has none: each of its
    items does."""
    if delivery and isinstance(params := delivery.body.get("params"), dict):
        return params, "message"
    of_fan_out = place.node.definition.type == "fan_out" and state.item_index == SINGLE
    if of_fan_out or state.status in (NodeStatus.PENDING.value, NodeStatus.SKIPPED.value):
        return None, None
    params = await rendering.params_of(conn, place.job, place.graph, place.node, state.item_index)
    return params, None if params is None else "computed"


def _lease(delivery: TaskDelivery) -> LeaseView:
    return LeaseView(
        worker_id=delivery.leased_by if delivery.leased else None,
        leased_until=delivery.leased_until,
        deliveries=delivery.delivery_count,
        enqueued_at=delivery.enqueued_at,
        visible_at=delivery.visible_at,
    )


def _attempt(result: AttemptResult) -> AttemptView:
    shared = result.model_dump(include=set(AttemptView.model_fields) - {"status"})
    return AttemptView(
        **shared,
        status=result.status.value,
        error=result.error_message,
        ended_at=result.reported_at,
        run_seconds=seconds_between(result.started_at, result.reported_at),
    )


def item_view(state: ItemState, now: datetime) -> ItemView:
    shared = asdict(state)
    ended = state.status in {status.value for status in NODE_MACHINE.terminal}
    return ItemView(
        **{name: shared[name] for name in ItemView.model_fields if name in shared},
        index=state.item_index,
        wait_seconds=seconds_between(state.dispatched_at, state.started_at),
        run_seconds=seconds_between(state.started_at, state.completed_at if ended else now),
        error=state.error_message,
        message=state.progress_message,
    )


async def item_page(conn: Connection, fan_out: ExpandedFanOut, filters: ItemFilters, now: datetime) -> ItemPage:
    if filters.order is ItemOrder.FAILED_FIRST and filters.state is not None:
        problem = Problem("order", "failed_first cannot be combined with state", "leave one of them out")
        raise InputError(f"the filters are wrong: {problem}", problems=[problem])
    indexes, cursor = await _ORDERS[filters.order](conn, fan_out, filters)
    states = await node_views.items(conn, fan_out, indexes)
    if filters.state is not None:  # an item may have moved on since its index was chosen
        states = [state for state in states if state.status == filters.state.value]
    return ItemPage(items=[item_view(state, now) for state in states], next_cursor=cursor)


Chosen = tuple[list[int], str | None]
"""The indexes of a page of items, and the cursor of the next page."""


async def _by_index(conn: Connection, fan_out: ExpandedFanOut, filters: ItemFilters) -> Chosen:
    (after,) = cursors.unpack(filters.cursor, int) if filters.cursor else (-1,)
    limit, total = filters.limit, fan_out.total
    after = min(max(after, -1), total)
    if filters.state is None:
        indexes = list(range(after + 1, min(after + 1 + limit, total)))
        return indexes, cursors.pack(indexes[-1]) if indexes and indexes[-1] < total - 1 else None
    indexes = await node_views.indexes_in_state(conn, fan_out, filters.state, after=after, limit=limit + 1)
    return indexes[:limit], cursors.pack(indexes[limit - 1]) if len(indexes) > limit else None


async def _failed_first(conn: Connection, fan_out: ExpandedFanOut, filters: ItemFilters) -> Chosen:
    """Choose failed items, then all others. The first page of the others begins on a page of its own."""
    rest, after = cursors.unpack(filters.cursor, int, int) if filters.cursor else (0, -1)
    limit, total = filters.limit, fan_out.total
    after = min(max(after, -1), total)
    if not rest:
        first = await node_views.indexes_in_state(conn, fan_out, NodeStatus.FAILED, after=after, limit=limit + 1)
        return first[:limit], cursors.pack(0, first[limit - 1]) if len(first) > limit else cursors.pack(1, -1)
    end = min(after + 1 + limit, total)
    failed = set(await node_views.indexes_in_state(conn, fan_out, NodeStatus.FAILED, after=after, limit=limit))
    indexes = [index for index in range(after + 1, end) if index not in failed]
    return indexes, cursors.pack(1, end - 1) if end < total else None


async def _by_run_time(conn: Connection, fan_out: ExpandedFanOut, filters: ItemFilters) -> Chosen:
    before = cursors.unpack(filters.cursor, float, int) if filters.cursor else None
    if before and not -1 <= before[1] <= fan_out.total:
        raise cursors.unreadable()
    slowest = await node_views.slowest_indexes(
        conn, fan_out, limit=filters.limit + 1, status=filters.state, before=before
    )
    page = slowest[: filters.limit]
    cursor = cursors.pack(float(page[-1][1]), page[-1][0]) if len(slowest) > filters.limit else None
    return [index for index, _ in page], cursor


_ORDERS = {
    ItemOrder.INDEX: _by_index,
    ItemOrder.FAILED_FIRST: _failed_first,
    ItemOrder.SLOWEST: _by_run_time,
}


async def item_summary(conn: Connection, fan_out: ExpandedFanOut, now: datetime) -> ItemSummary:
    census = await node_views.census(conn, fan_out)
    slowest = [index for index, _ in await node_views.slowest_indexes(conn, fan_out, limit=FEW)]
    failed = await node_views.indexes_in_state(conn, fan_out, NodeStatus.FAILED, after=-1, limit=FEW)
    return ItemSummary(
        total=fan_out.total,
        sent=fan_out.sent,
        states=census.states,
        buckets=[ItemBucket(first=bucket.first, last=bucket.last, states=bucket.states) for bucket in census.buckets],
        run_seconds=RunTimesView(**asdict(census.run_times)) if census.run_times else None,
        slowest=[item_view(state, now) for state in await node_views.items(conn, fan_out, slowest)],
        failed=[item_view(state, now) for state in await node_views.items(conn, fan_out, failed)],
    )
