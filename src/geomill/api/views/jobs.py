"""Views of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from geomill.contract.jobs import EdgeView, ItemCounts, JobDetails, MixedVersions, NodeView, Progress, seconds_between
from geomill.domain.engine.graph import Graph, GraphNode, branch_labels
from geomill.domain.engine.run import NodeRun, leads_to
from geomill.domain.states import JobStatus
from geomill.store.progress import JobProgress, NodeProgress


def job_details(
    progress: JobProgress,
    now: datetime,
    graph: Graph | None,
    heartbeat: datetime | None,
    versions: Sequence[tuple[str, str]],
    *,
    outputs: bool,
) -> JobDetails:
    """Return the details, with nodes in the order of the pinned definition. `heartbeat` is that of the job's owner, and
    `versions` are nodes with the code versions that ran at them."""
    job = progress.job
    definitions = dict(graph.nodes) if graph else {}
    places = {node_id: place for place, node_id in enumerate(definitions)}
    nodes = sorted(progress.nodes, key=lambda node: places.get(node.node_id, len(places)))
    return JobDetails.of(
        job,
        owner_heartbeat_at=heartbeat,
        input_params=job.input_params,
        result=job.result_data,
        run_seconds=seconds_between(job.started_at, job.completed_at or now),
        progress=progress_of(progress, now),
        nodes=[_node_view(node, definitions.get(node.node_id), now, outputs=outputs) for node in nodes],
        mixed_versions=_mixed_versions(versions, definitions),
    )


def _mixed_versions(versions: Sequence[tuple[str, str]], definitions: Mapping[str, GraphNode]) -> list[MixedVersions]:
    """Return the handlers of which more than one code version ran. Several nodes may have the same handler."""
    of_handlers: dict[str, list[str]] = {}
    for node_id, version in versions:
        definition = definitions.get(node_id)
        if definition and definition.execution:
            handler_versions = of_handlers.setdefault(definition.execution.handler, [])
            if version not in handler_versions:
                handler_versions.append(version)
    return [
        MixedVersions(handler=handler, versions=handler_versions)
        for handler, handler_versions in sorted(of_handlers.items())
        if len(handler_versions) > 1
    ]


def _node_view(node: NodeProgress, definition: GraphNode | None, now: datetime, *, outputs: bool) -> NodeView:
    items = ItemCounts(total=node.items_total, completed=node.items_completed, failed=node.items_failed)
    execution = definition.execution if definition else None
    return NodeView(
        node_id=node.node_id,
        status=node.status.value,
        attempt=node.attempt,
        retry_count=node.retry_count,
        type=definition.definition.type if definition else None,
        handler=execution.handler if execution else None,
        queue=execution.queue if execution else None,
        task_id=node.task_id,
        worker_id=node.worker_id,
        dispatched_at=node.dispatched_at,
        started_at=node.started_at,
        completed_at=node.completed_at,
        wait_seconds=seconds_between(node.dispatched_at, node.started_at),
        run_seconds=seconds_between(node.started_at, node.completed_at or now),
        error=node.error,
        error_code=node.error_code,
        progress=node.fraction,
        message=node.message,
        items=items if node.items_total else None,
        output=node.output if outputs else None,
        next=_edges(node, definition) if definition else [],
    )


def _edges(node: NodeProgress, definition: GraphNode) -> list[EdgeView]:
    branches = branch_labels(definition.definition)
    return [
        EdgeView(to=to, branch=branches.get(to), taken=_taken(node, definition, to)) for to in definition.successors
    ]


def _taken(node: NodeProgress, definition: GraphNode, to: str) -> bool | None:
    """Whether the job went from this node to that one. An undecided conditional has no output."""
    if not node.terminal:
        return None
    return leads_to(definition, NodeRun(node.status, output=node.output), to)


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
