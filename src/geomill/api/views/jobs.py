"""Views of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from geomill.contract.jobs import ItemCounts, JobDetails, NodeView, Progress
from geomill.domain.states import JobStatus
from geomill.store.progress import JobProgress, NodeProgress


def job_details(progress: JobProgress, now: datetime, order: Sequence[str], *, outputs: bool) -> JobDetails:
    """Return the details, with nodes in the given order. Nodes that are not in `order` come last."""
    places = {node_id: place for place, node_id in enumerate(order)}
    nodes = sorted(progress.nodes, key=lambda node: places.get(node.node_id, len(places)))
    return JobDetails.of(
        progress.job,
        input_params=progress.job.input_params,
        result=progress.job.result_data,
        progress=progress_of(progress, now),
        nodes=[_node_view(node, outputs=outputs) for node in nodes],
    )


def _node_view(node: NodeProgress, *, outputs: bool) -> NodeView:
    items = ItemCounts(total=node.items_total, completed=node.items_completed, failed=node.items_failed)
    return NodeView(
        node_id=node.node_id,
        status=node.status.value,
        attempt=node.attempt,
        retry_count=node.retry_count,
        started_at=node.started_at,
        completed_at=node.completed_at,
        error=node.error,
        progress=node.fraction,
        message=node.message,
        items=items if node.items_total else None,
        output=node.output if outputs else None,
    )


def progress_of(progress: JobProgress, now: datetime) -> Progress:
    remaining = progress.remaining(now)
    return Progress(
        fraction=1.0 if progress.job.status is JobStatus.COMPLETED else round(progress.fraction, 4),
        nodes_total=len(progress.nodes),
        nodes_ended=sum(node.terminal for node in progress.nodes),
        items_total=sum(node.items_total for node in progress.nodes),
        items_ended=sum(node.items_completed + node.items_failed for node in progress.nodes),
        remaining_seconds=None if remaining is None else round(remaining, 1),
        eta=None if remaining is None else now + timedelta(seconds=remaining),
        waits=list(progress.waits),
    )
