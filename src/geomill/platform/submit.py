"""Turns a submission into an asset, a request and a message, in one transaction.

Invalid submissions are refused before anything is written. An error while writing rolls everything back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from geomill.catalogue.following import follow_decision
from geomill.domain.assets import naming
from geomill.domain.assets.asset import Asset, job_priority
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.lifecycle import Actor, Operation, opening
from geomill.domain.assets.metadata import DatasetMetadata
from geomill.domain.assets.platform import Platform, Refs
from geomill.domain.assets.request import NewRequest, PlatformRequest
from geomill.domain.assets.submission import Submission
from geomill.domain.engine.callback import check_callback_url
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.repetition import differing, key_conflict
from geomill.domain.engine.starting import Starter
from geomill.domain.engine.workflow import Workflow
from geomill.domain.ids import new_id
from geomill.engine.submit import enqueue
from geomill.errors import InputsError, PlatformInactive, Problem
from geomill.platform.desk import Desk
from geomill.platform.preflight import missing, preflight, source_names
from geomill.store import assets, platforms, requests
from geomill.store.pool import Connection

_DECISIONS = {
    Operation.CREATED: AuditDecision.SUBMITTED,
    Operation.UPDATED: AuditDecision.OVERWRITTEN,
    Operation.REACTIVATED: AuditDecision.REACTIVATED,
}
_COMPARED = (
    "platform_refs",
    "data_type",
    "container_name",
    "file_names",
    "workflow_id",
    "processing_options",
    "metadata",
    "overwrite",
    "clearance_level",
    "priority",
    "callback_url",
)
"""The fields in which a repeated submission must equal the first one with its idempotency key."""
_BODY_NAMES = {"file_names": "file_name"}
TIME_OPTIONS = frozenset({"datetime", "start_datetime", "end_datetime"})
SUPERSEDED = "superseded by a newer revision"


@dataclass(frozen=True, slots=True)
class Accepted:
    request: PlatformRequest
    asset: Asset
    operation: Operation | None
    """None if the idempotency key already had a request."""
    message: JobQueueMessage | None = None
    warnings: list[str] = field(default_factory=list)


async def submit(
    conn: Connection, desk: Desk, submission: Submission, actor: Actor, *, dry_run: bool = False
) -> Accepted:
    """Accept a submission of a partner, or of an operator on its behalf. An operator may name any workflow that
    operators may start, any container and any priority."""
    platform = await platforms.get(conn, submission.platform_id)
    if not platform.is_active:
        raise PlatformInactive(
            f"the platform '{platform.platform_id}' accepts no submissions",
            remedy="ask an administrator to activate it",
        )
    actor.require_priority(submission.priority)
    platform.check_refs(submission.platform_refs)
    check_callback_url(submission.callback_url)
    workflow = desk.workflow_for(platform, submission.data_type, submission.workflow_id, actor.starter)
    sources = source_names(submission.container_name, submission.file_names)
    asset_id = naming.asset_id(platform.platform_id, submission.platform_refs)
    if earlier := await _earlier(
        conn, desk, submission, asset_id, workflow
    ):  # before preflight, because its source may be deleted by now
        return earlier
    if actor.starter is Starter.PARTNERS and not platform.may_read(submission.container_name):
        raise missing(sources[0])
    check = await preflight(desk.storage, sources, submission.data_type)
    warnings, size = check.warnings, check.routed_size
    workflow = desk.workflow_for(platform, submission.data_type, submission.workflow_id, actor.starter, size)
    superseded: list[str] = []
    async with conn.transaction(force_rollback=dry_run):
        if submission.idempotency_key is not None:
            await assets.serialise(conn, f"{platform.platform_id}|{submission.idempotency_key}")
        await assets.serialise(conn, asset_id)
        if earlier := await _earlier(conn, desk, submission, asset_id, workflow):
            return earlier
        before = await assets.lock(conn, asset_id)
        operation = opening(before, submission.data_type, overwrite=submission.overwrite)
        new = _request(submission, asset_id, before, workflow, actor)
        if before is None:
            asset = await _create(conn, platform, new)
            warnings += _name_warnings(platform, asset)
        else:
            asset = await assets.open_revision(conn, new)
            superseded = await requests.supersede(conn, asset_id)
        message = job_message(new, workflow, asset, actor, asset.updated_at)
        async with conn.pipeline():
            await enqueue(conn, desk.workflow_registry, desk.job_queue, [message], actor.starter)  # checks the options
            await assets.note(conn, _DECISIONS[operation], actor, asset, before, job_id=message.job_id)
            request = await requests.create(conn, new)
        if before is not None:
            await follow_decision(conn, asset_id)
    if not dry_run:
        await desk.announce(conn)
        await desk.cancel(conn, superseded, SUPERSEDED)
    return Accepted(request, asset, operation, message, warnings)


async def _earlier(
    conn: Connection, desk: Desk, submission: Submission, asset_id: str, workflow: Workflow
) -> Accepted | None:
    """Return the request that already has the submission's idempotency key, or None. Keys belong to a platform, whose
    submitters all see its requests. Raises `ConflictError` if the request differs."""
    if submission.idempotency_key is None:
        return None
    request = await requests.by_idempotency_key(conn, submission.platform_id, submission.idempotency_key)
    if request is None:
        return None
    unnamed = submission.workflow_id is None and desk.is_default(submission.data_type, request.workflow_id)
    again = {**vars(submission), "workflow_id": request.workflow_id if unnamed else workflow.workflow_id}
    if names := differing(vars(request), again, _COMPARED):
        raise key_conflict([_BODY_NAMES.get(name, name) for name in names], what="request")
    return Accepted(request, await assets.get(conn, asset_id), None)


def _request(
    submission: Submission, asset_id: str, before: Asset | None, workflow: Workflow, actor: Actor
) -> NewRequest:
    accepted = {
        "request_id": naming.request_id(asset_id, new_id()),
        "asset_id": asset_id,
        "revision": before.revision + 1 if before else 1,
        "workflow_id": workflow.workflow_id,
        "submitted_by": actor.name,
        "on_behalf_of": actor.on_behalf_of,
        "job_id": new_id(),
    }
    return NewRequest(**{**vars(submission), **accepted})


async def _create(conn: Connection, platform: Platform, request: NewRequest) -> Asset:
    refs = request.platform_refs
    group, names = platform.group_of(refs), naming.collection_candidates(platform, refs)
    collection_id = await assets.collection(conn, platform.platform_id, group, names)
    return await assets.create(conn, request, collection_id, naming.candidates(platform, refs, request.asset_id))


def _name_warnings(platform: Platform, asset: Asset) -> list[str]:
    """Tell a submitter whose identifier differs from another one only in letters that names do not keep."""
    plain = next(naming.collection_candidates(platform, asset.platform_refs))
    if asset.stac_collection_id == plain or "--" in plain:
        return []
    field, group = platform.required_refs[0], platform.group_of(asset.platform_refs)
    warning = (
        f"the collection of {field} '{group}' is called '{asset.stac_collection_id}', because '{plain}' belongs to "
        f"another {field} that differs only by case, accents or punctuation: check whether you meant that one"
    )
    return [warning]


def job_message(
    request: NewRequest, workflow: Workflow, asset: Asset, actor: Actor, submitted_at: datetime
) -> JobQueueMessage:
    """Return the order of the job of a request. Raises `InputsError` if its options clash with what geomill sets."""
    return JobQueueMessage(
        job_id=request.job_id,
        workflow_id=workflow.workflow_id,
        input_params=_inputs(request, workflow, asset),
        correlation_id=request.correlation_id,
        submitted_by=actor.name[:64],
        on_behalf_of=actor.on_behalf_of,
        submitted_at=submitted_at,
        callback_url=request.callback_url,
        priority=job_priority(request.priority),
        tenant=asset.platform_id,
        asset_id=asset.asset_id,
        asset_revision=asset.revision,
        request_id=asset.last_request_id,
    )


def _inputs(submission: Submission, workflow: Workflow, asset: Asset) -> dict[str, Any]:
    """Return the workflow's inputs: facts that it declares, and the submitter's options."""
    declared = {name: value for name, value in facts(submission, asset).items() if name in workflow.inputs}
    clash = [name for name in submission.processing_options if name in declared]
    if clash:
        problems = [Problem(f"processing_options.{name}", "is set by geomill", "remove it") for name in clash]
        raise InputsError(f"the processing options are wrong: {problems[0]}", problems=problems)
    if "file_name" in declared and "file_names" not in declared and len(submission.file_names) > 1:
        problem = Problem(
            "file_name", f"the workflow '{workflow.workflow_id}' takes one file", "submit them one by one"
        )
        raise InputsError(f"too many files: {problem}", problems=[problem])
    return {**declared, **_times(submission, workflow), **submission.processing_options}


def _times(submission: Submission, workflow: Workflow) -> dict[str, str]:
    """Return the temporal extent as inputs, if the workflow has them and the options name no other time."""
    times = DatasetMetadata.model_validate(submission.metadata or {}).times
    is_input = times.keys() <= workflow.inputs.keys() and not submission.processing_options.keys() & TIME_OPTIONS
    return times if is_input else {}


class SubmissionFacts(TypedDict):
    """The values that a workflow gets by declaring an input of that name."""

    asset_id: str
    revision: int
    request_id: str | None
    platform_id: str
    platform_refs: Refs
    data_type: str
    container_name: str
    file_name: str
    blob_name: str
    file_names: list[str]
    table_name: str
    blob_prefix: str
    stac_item_id: str
    stac_collection_id: str


FACT_NAMES = frozenset(SubmissionFacts.__annotations__)


def facts(submission: Submission, asset: Asset) -> SubmissionFacts:
    return {
        "asset_id": asset.asset_id,
        "revision": asset.revision,
        "request_id": asset.last_request_id,
        "platform_id": asset.platform_id,
        "platform_refs": asset.platform_refs,
        "data_type": asset.data_type.value,
        "container_name": submission.container_name,
        "file_name": submission.file_names[0],
        "blob_name": submission.file_names[0],
        "file_names": submission.file_names,
        "table_name": naming.table_name(asset.table_stem, asset.revision),
        "blob_prefix": naming.blob_prefix(asset.blob_stem, asset.revision),
        "stac_item_id": asset.stac_item_id,
        "stac_collection_id": asset.stac_collection_id,
    }
