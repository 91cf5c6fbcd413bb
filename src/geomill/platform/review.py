"""Decisions of reviewers. Each is one transaction with its audit line and the job that it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.catalogue.following import follow_decision
from geomill.domain.assets import lifecycle
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.lifecycle import Actor, Outside, Reviewed
from geomill.domain.engine.job import JobPurpose
from geomill.domain.states import ClearanceState, JobStatus
from geomill.errors import AssetState
from geomill.platform import export
from geomill.platform.desk import Desk
from geomill.store import assets, jobs, leftovers, requests
from geomill.store.pool import Connection, transaction_time

Decide = Callable[[Asset, datetime], Reviewed]


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    asset: Asset
    decision: AuditDecision | None
    """None if nothing changed."""
    warnings: tuple[str, ...] = ()
    export_job_id: str | None = None
    """The started export or withdrawal."""
    delete_job_id: str | None = None
    would: dict[str, Any] | None = None
    """The consequences. Only set in a dry run."""


async def approve(
    conn: Connection,
    desk: Desk,
    identifier: str,
    clearance: ClearanceState,
    actor: Actor,
    expected_revision: int | None,
) -> ReviewOutcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.approve(asset, clearance, actor, now, expected_revision)

    return await _review(conn, desk, identifier, actor, decide, current=True)


async def reject(
    conn: Connection, desk: Desk, identifier: str, reason: str, actor: Actor, expected_revision: int | None
) -> ReviewOutcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.reject(asset, reason, actor, now, expected_revision)

    return await _review(conn, desk, identifier, actor, decide, reason=reason, current=True)


async def revoke(
    conn: Connection, desk: Desk, identifier: str, reason: str, actor: Actor, expected_revision: int | None
) -> ReviewOutcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.revoke(asset, reason, actor, now, expected_revision)

    return await _review(conn, desk, identifier, actor, decide, reason=reason, current=True)


async def unpublish(
    conn: Connection,
    desk: Desk,
    identifier: str,
    actor: Actor,
    *,
    reason: str | None = None,
    delete_data: bool = False,
    expected_revision: int | None = None,
    dry_run: bool = False,
) -> ReviewOutcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.unpublish(asset, actor, now, expected_revision, delete_data=delete_data)

    return await _review(conn, desk, identifier, actor, decide, reason=reason, delete_data=delete_data, dry_run=dry_run)


async def rollback(
    conn: Connection,
    desk: Desk,
    identifier: str,
    revision: int,
    actor: Actor,
    *,
    reason: str | None = None,
    expected_revision: int | None = None,
) -> ReviewOutcome:
    """Open a new revision with the outputs of an old one. It waits for review."""
    identified = await assets.identify(conn, identifier)
    async with conn.transaction():
        before = await _lock(conn, identified.asset_id)
        target = await assets.revision(conn, before.asset_id, revision)
        deleted = await leftovers.deleted(conn, before.asset_id, revision)
        warnings = lifecycle.check_rollback(before, target, revision, expected_revision, deleted=deleted)
        running = await requests.supersede(conn, before.asset_id)
        after = await assets.roll_back(conn, before.asset_id, revision)
        brought_back = ", which was revoked or unpublished" if warnings else ""
        text = f"to revision {revision}{brought_back}" + (f": {reason}" if reason else "")
        await assets.note(conn, AuditDecision.ROLLED_BACK, actor, after, before, reason=text)
        await follow_decision(conn, after.asset_id)
    await desk.cancel(conn, running, "superseded by a rollback")
    return ReviewOutcome(after, AuditDecision.ROLLED_BACK, warnings)


async def retry_export(
    conn: Connection, desk: Desk, identifier: str, actor: Actor, expected_revision: int | None = None
) -> ReviewOutcome:
    """Start a failed export or withdrawal again."""
    identified = await assets.identify(conn, identifier)
    async with conn.transaction():
        before = await _lock(conn, identified.asset_id)
        what = await _broken(conn, before)
        lifecycle.check_retried_export(before, what, expected_revision)
        run = await desk.exporter.start(conn, before, what, actor)
        after = await assets.decide(conn, before.evolve(adf_run_id=run))
        await assets.note(conn, AuditDecision.EXPORT_RETRIED, actor, after, before, job_id=run)
    await desk.announce(conn)
    return ReviewOutcome(after, AuditDecision.EXPORT_RETRIED, export_job_id=run)


async def _review(
    conn: Connection,
    desk: Desk,
    identifier: str,
    actor: Actor,
    decide: Decide,
    *,
    reason: str | None = None,
    current: bool = False,
    delete_data: bool = False,
    dry_run: bool = False,
) -> ReviewOutcome:
    """Make one decision. With `current`, the id of a request or job must belong to the current revision."""
    identified = await assets.identify(conn, identifier)
    run = deletion = None
    async with conn.transaction(force_rollback=dry_run):
        before = await _lock(conn, identified.asset_id)
        if current:
            lifecycle.check_current(before, identified.request_id, identifier)
        reviewed = decide(before, await transaction_time(conn))
        if reviewed.decision is None:
            return ReviewOutcome(before, None, reviewed.warnings)
        stopped = [] if reviewed.asset.active else await assets.open_jobs(conn, before.asset_id)
        after = await assets.decide(conn, reviewed.asset)
        if reviewed.outside and not dry_run:
            run = await desk.exporter.start(conn, after, reviewed.outside, actor)
        if delete_data and not dry_run:
            deletion = await export.delete_data(conn, desk.workflow_registry, desk.job_queue, after, actor, stopped)
        if run or deletion:
            ordered = {"adf_run_id": run or after.adf_run_id, "delete_run_id": deletion or after.delete_run_id}
            after = await assets.decide(conn, after.evolve(**ordered))
        await assets.note(conn, reviewed.decision, actor, after, before, reason=reason, job_id=run or deletion)
        await follow_decision(conn, after.asset_id)
    if dry_run:
        return ReviewOutcome(after, reviewed.decision, reviewed.warnings, would=_would(reviewed, stopped, delete_data))
    await desk.announce(conn)
    warnings = reviewed.warnings
    if reviewed.outside is Outside.WITHDRAW:
        warnings += await desk.hide(before.asset_id)
    why = f"the asset was {reviewed.decision.value.replace('_', ' ')}"
    await _stop_outside(conn, desk, before if run else None, why)
    await desk.cancel(conn, stopped, why)
    return ReviewOutcome(after, reviewed.decision, warnings, run, deletion)


async def _stop_outside(conn: Connection, desk: Desk, before: Asset | None, why: str) -> None:
    """Stop the superseded export or withdrawal. Each step of an export checks whether its order is still current."""
    job = await jobs.find(conn, before.adf_run_id) if before and before.adf_run_id else None
    if job and job.purpose is JobPurpose.EXPORT:
        await desk.cancel(conn, [job.job_id], why)
    elif before and before.adf_run_id:
        await desk.call_off(conn, before.adf_run_id, why)


def _would(reviewed: Reviewed, stopped: list[str], delete_data: bool) -> dict[str, Any]:
    return {
        "outside": reviewed.outside.value if reviewed.outside else None,
        "cancels": stopped,
        "deletes_revisions": reviewed.asset.revision if delete_data else 0,
    }


async def _lock(conn: Connection, asset_id: str) -> Asset:
    asset = await assets.lock(conn, asset_id)
    if asset is None:
        raise assets.unknown(asset_id)
    return asset


async def _broken(conn: Connection, asset: Asset) -> Outside:
    """Return the purpose of the latest run, which must have failed."""
    job = await jobs.find(conn, asset.adf_run_id) if asset.adf_run_id else None
    if job is None or job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        state = "it has none" if asset.adf_run_id is None else "the latest waits, runs or has completed"
        raise AssetState(f"{asset.asset_id} has no failed export to retry: {state}", remedy="approve it as public")
    return Outside.EXPORT if job.purpose is JobPurpose.EXPORT else Outside.WITHDRAW
