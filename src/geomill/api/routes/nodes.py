"""Routes of the nodes of a job and the items of its fan-outs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from geomill.api import lookup
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.api.routes.jobs import JobId
from geomill.api.views import nodes as views
from geomill.api.views.nodes import JobNode
from geomill.contract.nodes import ItemFilters, ItemPage, ItemSummary, NodeDetails
from geomill.domain.engine.job import Job
from geomill.errors import ConflictError, NotFoundError, nearest
from geomill.store import jobs, node_views
from geomill.store.node_views import ExpandedFanOut
from geomill.store.pool import Connection, transaction_time

router = APIRouter(prefix="/api/v1/jobs/{job_id}/nodes", tags=["jobs"], responses=problem_responses(404, 409, 503))

NodeId = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
ItemIndex = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("/{node_id}", summary="Get a node of a job")
async def get_node(gateway: TheGateway, job_id: JobId, node_id: NodeId) -> NodeDetails:
    """Returns the node with its attempts, its checkpoint, and the parameters of its current attempt."""
    async with gateway.connection() as conn:
        place = await _place(gateway, conn, job_id, node_id)
        return await views.node_details(conn, place, await transaction_time(conn))


@router.get("/{node_id}/items", summary="List the items of a fan-out")
async def list_items(
    gateway: TheGateway, job_id: JobId, node_id: NodeId, filters: Annotated[ItemFilters, Query()]
) -> ItemPage:
    async with gateway.connection() as conn:
        fan_out = _expanded(await _place(gateway, conn, job_id, node_id))
        return await views.item_page(conn, fan_out, filters, await transaction_time(conn))


@router.get("/{node_id}/items/summary", summary="Count the items of a fan-out by state")
async def summarise_items(gateway: TheGateway, job_id: JobId, node_id: NodeId) -> ItemSummary:
    """Returns counts, run times, the slowest items and the first that failed."""
    async with gateway.connection() as conn:
        fan_out = _expanded(await _place(gateway, conn, job_id, node_id))
        return await views.item_summary(conn, fan_out, await transaction_time(conn))


@router.get("/{node_id}/items/{index}", summary="Get an item of a fan-out")
async def get_item(gateway: TheGateway, job_id: JobId, node_id: NodeId, index: ItemIndex) -> NodeDetails:
    """Returns the item in the form of a node."""
    async with gateway.connection() as conn:
        place = await _place(gateway, conn, job_id, node_id)
        fan_out = _expanded(place)
        if index >= fan_out.total:
            raise NotFoundError(
                f"the fan-out '{node_id}' has no item {index}: it has {fan_out.total} items, numbered from 0"
            )
        (state,) = await node_views.items(conn, fan_out, [index])
        return await views.item_details(conn, place, state, await transaction_time(conn))


async def _place(gateway: Gateway, conn: Connection, job_id: str, node_id: str) -> JobNode:
    """Return a node of a claimed job. Raises `NotFoundError`, or `ConflictError` if the job has no nodes."""
    job = await jobs.find(conn, job_id)
    if job is None:
        await lookup.require_claimed(conn, gateway.job_queue, job_id)
        job = await jobs.get(conn, job_id)
    if job.details_deleted_at:
        raise ConflictError(f"the job {job_id} has no nodes: {job.details_gone}")
    if job.definition_hash is None:
        raise ConflictError(f"the job {job_id} has no nodes: it never began")
    graph = await gateway.graphs.get(conn, job.definition_hash)
    node = graph.nodes.get(node_id)
    row = await node_views.find(conn, job_id, node_id) if node else None
    if node is None or row is None:
        raise _unknown(job, node_id, list(graph.nodes))
    return JobNode(job, graph, node, row)


def _unknown(job: Job, node_id: str, node_ids: list[str]) -> NotFoundError:
    return NotFoundError(
        f"the job {job.job_id} has no node '{node_id}'", remedy=nearest(node_id, node_ids) or f"it has {node_ids[:20]}"
    )


def _expanded(place: JobNode) -> ExpandedFanOut:
    if place.node.definition.type != "fan_out" or place.queue is None:
        raise ConflictError(f"the node '{place.node.node_id}' has no items: it is a {place.node.definition.type}")
    return ExpandedFanOut(place.row, place.queue)
