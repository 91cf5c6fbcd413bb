"""From a partner's order to an asset, a request and a message, in one transaction.

Whatever is wrong is found before anything is written; what is found only while writing rolls all of it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from geomill.domain.assets import naming
from geomill.domain.assets.asset import NORMAL_ASSET_PRIORITY, Asset, DataType, message_priority
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.lifecycle import Actor, Operation, opening, require_seen
from geomill.domain.assets.platform import Platform, Refs
from geomill.domain.assets.request import PlatformRequest, RequestStatus
from geomill.domain.engine.callback import check_callback_url
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.domain.engine.workflow import Workflow
from geomill.domain.ids import new_id
from geomill.domain.states import ClearanceState
from geomill.engine.submit import enqueue
from geomill.errors import AssetState, ConflictError, InputsError, PlatformInactive, Problem
from geomill.platform.desk import Desk
from geomill.platform.preflight import missing, preflight, source_names
from geomill.store import assets, platforms, requests
from geomill.store.assets import NewAsset, SubmittedFields
from geomill.store.pool import Connection, transaction_time

_DECISIONS = {
    Operation.CREATED: AuditDecision.SUBMITTED,
    Operation.UPDATED: AuditDecision.OVERWRITTEN,
    Operation.REACTIVATED: AuditDecision.REACTIVATED,
}
SUPERSEDED = "superseded by a newer revision"


@dataclass(frozen=True, slots=True)
class Submission:
    platform_id: str
    platform_refs: Refs
    data_type: DataType
    container_name: str
    file_names: list[str]
    workflow_id: str | None = None
    processing_options: dict[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    clearance_level: ClearanceState | None = None
    priority: int = NORMAL_ASSET_PRIORITY
    callback_url: str | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    request: PlatformRequest
    asset: Asset
    operation: Operation | None
    """None when the idempotency key has a request already."""
    message: JobQueueMessage | None = None
    warnings: list[str] = field(default_factory=list)


async def submit(conn: Connection, desk: Desk, wanted: Submission, actor: Actor, *, dry_run: bool = False) -> Accepted:
    """Take an order of a partner, or of an operator for one: an operator may name any workflow that is not of the
    house, any container and any priority."""
    platform = await platforms.get(conn, wanted.platform_id)
    if not platform.is_active:
        raise PlatformInactive(
            f"the platform '{platform.platform_id}' takes no submissions", remedy="ask an administrator to activate it"
        )
    actor.require_priority(wanted.priority)
    platform.check_refs(wanted.platform_refs)
    check_callback_url(wanted.callback_url)
    workflow = desk.workflow_for(platform, wanted.data_type, wanted.workflow_id, actor.starter)
    sources = source_names(wanted.container_name, wanted.file_names)
    asset_id = naming.asset_id(platform.platform_id, wanted.platform_refs)
    if earlier := await _earlier(conn, wanted, asset_id):  # its source may be gone by now
        return earlier
    if actor.starter is Starter.PARTNERS and not platform.may_read(wanted.container_name):
        raise missing(sources[0])
    warnings = await preflight(desk.storage, sources, wanted.data_type)
    superseded: list[str] = []
    async with conn.transaction(force_rollback=dry_run):
        if wanted.idempotency_key is not None:
            await assets.serialise(conn, f"{platform.platform_id}|{wanted.idempotency_key}")
        await assets.serialise(conn, asset_id)
        if earlier := await _earlier(conn, wanted, asset_id):
            return earlier
        before = await assets.lock(conn, asset_id)
        operation = opening(before, wanted.data_type, overwrite=wanted.overwrite)
        order = _order(wanted, asset_id, workflow)
        if before is None:
            asset = await _create(conn, platform, wanted, asset_id, order)
        else:
            asset = await assets.open_revision(conn, asset_id, order)
            superseded = await requests.supersede(conn, asset_id)
        message = _message(wanted, workflow, asset, actor).model_copy(update={"submitted_at": asset.updated_at})
        async with conn.pipeline():
            await enqueue(conn, desk.catalogue, desk.job_queue, [message], actor.starter)  # checks the options
            await assets.note(conn, _DECISIONS[operation], actor, asset, before, job_id=message.job_id)
            request = await requests.create(conn, _request(wanted, workflow, asset, message, actor))
    if not dry_run:
        await desk.announce(conn)
        await desk.cancel(conn, superseded, SUPERSEDED)
    return Accepted(request, asset, operation, message, warnings)


async def retry(
    conn: Connection, desk: Desk, given: str, actor: Actor, expected_revision: int | None = None
) -> Accepted:
    """The same request, with a new job."""
    found = await assets.identify(conn, given)
    async with conn.transaction():
        asset = await assets.lock(conn, found.asset_id)
        if asset is None or found.request_id is None or not asset.active:
            raise AssetState(f"'{given}' has no request that could be retried", remedy="submit it again")
        require_seen(asset, expected_revision)
        request = await requests.lock(conn, found.request_id)
        if request.request_id != asset.last_request_id or request.status is not RequestStatus.FAILED:
            raise AssetState(
                f"the request {request.request_id} is {request.status.value}", remedy="only a failed one is retried"
            )
        workflow = desk.catalogue.get(request.workflow_id)
        submission = replace(_submission(request), priority=actor.retry_priority(request.priority))
        message = _message(submission, workflow, asset, actor).model_copy(
            update={"submitted_at": await transaction_time(conn)}
        )
        after = await requests.retry(conn, request.request_id, message.job_id)
        await enqueue(conn, desk.catalogue, desk.job_queue, [message], Starter.OPERATORS)  # it was accepted before
        await assets.note(conn, AuditDecision.RETRIED, actor, asset, asset, job_id=message.job_id)
    await desk.announce(conn)
    return Accepted(after, await assets.get(conn, asset.asset_id), None, message)


async def _earlier(conn: Connection, wanted: Submission, asset_id: str) -> Accepted | None:
    if wanted.idempotency_key is None:
        return None
    request = await requests.by_idempotency_key(conn, wanted.platform_id, wanted.idempotency_key)
    if request is None:
        return None
    if request.asset_id != asset_id:
        raise ConflictError(
            f"the idempotency key belongs to a request for the asset {request.asset_id}", remedy="use another key"
        )
    return Accepted(request, await assets.get(conn, asset_id), None)


async def _create(
    conn: Connection, platform: Platform, wanted: Submission, asset_id: str, order: SubmittedFields
) -> Asset:
    refs = wanted.platform_refs
    group, names = platform.group_of(refs), naming.collection_candidates(platform, refs)
    collection = await assets.collection(conn, platform.platform_id, group, names)
    new = NewAsset(asset_id, platform.platform_id, refs, wanted.data_type, collection)
    return await assets.create(conn, new, order, naming.candidates(platform, refs, asset_id))


def _order(wanted: Submission, asset_id: str, workflow: Workflow) -> SubmittedFields:
    identity = naming.request_id(asset_id, new_id())
    return SubmittedFields(identity, workflow.workflow_id, wanted.priority, wanted.clearance_level)


def _request(
    wanted: Submission, workflow: Workflow, asset: Asset, message: JobQueueMessage, actor: Actor
) -> dict[str, Any]:
    return {
        "request_id": asset.last_request_id,
        "asset_id": asset.asset_id,
        "revision": asset.revision,
        "platform_id": wanted.platform_id,
        "platform_refs": wanted.platform_refs,
        "data_type": wanted.data_type,
        "container_name": wanted.container_name,
        "file_names": wanted.file_names,
        "overwrite": wanted.overwrite,
        "workflow_id": workflow.workflow_id,
        "processing_options": wanted.processing_options,
        "clearance_level": wanted.clearance_level,
        "priority": wanted.priority,
        "callback_url": wanted.callback_url,
        "correlation_id": wanted.correlation_id,
        "idempotency_key": wanted.idempotency_key,
        "submitted_by": actor.name,
        "job_id": message.job_id,
    }


def _submission(request: PlatformRequest) -> Submission:
    fields = {name: getattr(request, name) for name in Submission.__dataclass_fields__}
    return Submission(**fields)


def _message(wanted: Submission, workflow: Workflow, asset: Asset, actor: Actor) -> JobQueueMessage:
    return JobQueueMessage(
        workflow_id=workflow.workflow_id,
        input_params=_inputs(wanted, workflow, asset),
        correlation_id=wanted.correlation_id,
        submitted_by=actor.name[:64],
        callback_url=wanted.callback_url,
        priority=message_priority(wanted.priority),
        tenant=asset.platform_id,
        asset_id=asset.asset_id,
        asset_revision=asset.revision,
        request_id=asset.last_request_id,
    )


def _inputs(wanted: Submission, workflow: Workflow, asset: Asset) -> dict[str, Any]:
    """What the platform knows, as far as the workflow wants to know it, and the caller's options."""
    given = {name: value for name, value in facts(wanted, asset).items() if name in workflow.inputs}
    clash = [name for name in wanted.processing_options if name in given]
    if clash:
        problems = [
            Problem(f"processing_options.{name}", "is given by the platform itself", "leave it out") for name in clash
        ]
        raise InputsError(f"the processing options are wrong: {problems[0]}", problems=problems)
    if "file_name" in given and "file_names" not in given and len(wanted.file_names) > 1:
        problem = Problem(
            "file_name", f"the workflow '{workflow.workflow_id}' takes one file", "submit them one by one"
        )
        raise InputsError(f"too many files: {problem}", problems=[problem])
    return {**given, **wanted.processing_options}


def facts(wanted: Submission, asset: Asset) -> Mapping[str, Any]:
    """The inputs that a workflow need only declare to get."""
    return {
        "asset_id": asset.asset_id,
        "revision": asset.revision,
        "request_id": asset.last_request_id,
        "platform_id": asset.platform_id,
        "platform_refs": asset.platform_refs,
        "data_type": asset.data_type.value,
        "container_name": wanted.container_name,
        "file_name": wanted.file_names[0],
        "file_names": wanted.file_names,
        "table_name": naming.table_name(asset.table_stem, asset.revision),
        "blob_prefix": naming.blob_prefix(asset.blob_stem, asset.revision),
        "stac_item_id": asset.stac_item_id,
        "stac_collection_id": asset.stac_collection_id,
    }
