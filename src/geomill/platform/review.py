"""What reviewers decide: each decision is one transaction with its row in the audit and the job that it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain import lifecycle
from geomill.domain.asset import Asset
from geomill.domain.audit import Decision
from geomill.domain.job import JobPurpose
from geomill.domain.lifecycle import Actor, Outside, Reviewed
from geomill.domain.states import JOB_MACHINE, ClearanceState
from geomill.errors import AssetState
from geomill.platform import export
from geomill.platform.desk import Desk
from geomill.store import assets, jobs
from geomill.store.pool import Connection, transaction_time

Decide = Callable[[Asset, datetime], Reviewed]


@dataclass(frozen=True, slots=True)
class Outcome:
    asset: Asset
    decision: Decision
    warnings: tuple[str, ...] = ()
    export_job_id: str | None = None
    """The export or the withdrawal that was started."""
    delete_job_id: str | None = None
    would: dict[str, Any] | None = None
    """Of a dry run."""


async def approve(
    conn: Connection, desk: Desk, given: str, clearance: ClearanceState, actor: Actor, expected_revision: int | None
) -> Outcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.approve(asset, clearance, actor, now, expected_revision)

    return await _review(conn, desk, given, actor, decide)


async def reject(
    conn: Connection, desk: Desk, given: str, reason: str, actor: Actor, expected_revision: int | None
) -> Outcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.reject(asset, reason, actor, now, expected_revision)

    return await _review(conn, desk, given, actor, decide, reason=reason)


async def revoke(
    conn: Connection, desk: Desk, given: str, reason: str, actor: Actor, expected_revision: int | None
) -> Outcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.revoke(asset, reason, actor, now, expected_revision)

    return await _review(conn, desk, given, actor, decide, reason=reason)


async def unpublish(
    conn: Connection,
    desk: Desk,
    given: str,
    actor: Actor,
    *,
    reason: str | None = None,
    delete_data: bool = False,
    expected_revision: int | None = None,
    dry_run: bool = False,
) -> Outcome:
    def decide(asset: Asset, now: datetime) -> Reviewed:
        return lifecycle.unpublish(asset, actor, now, expected_revision)

    return await _review(conn, desk, given, actor, decide, reason=reason, delete_data=delete_data, dry_run=dry_run)


async def rollback(
    conn: Connection,
    desk: Desk,
    given: str,
    revision: int,
    actor: Actor,
    *,
    reason: str | None = None,
    expected_revision: int | None = None,
) -> Outcome:
    """A new revision that points at the outputs of an old one, and waits for review."""
    found = await assets.identify(conn, given)
    async with conn.transaction():
        before = await _lock(conn, found.asset_id)
        target = await assets.revision(conn, before.asset_id, revision)
        lifecycle.check_rollback(before, target, revision, expected_revision)
        running = await _open_job(conn, before)
        after = await assets.roll_back(conn, before.asset_id, revision)
        text = f"to revision {revision}" + (f": {reason}" if reason else "")
        await assets.note(conn, Decision.ROLLED_BACK, actor, after, before, reason=text)
    await desk.cancel(conn, running, "superseded by a rollback")
    return Outcome(after, Decision.ROLLED_BACK)


async def retry_export(conn: Connection, desk: Desk, given: str, actor: Actor) -> Outcome:
    """Start the export or withdrawal again that failed."""
    found = await assets.identify(conn, given)
    async with conn.transaction():
        before = await _lock(conn, found.asset_id)
        job = await jobs.find(conn, before.adf_run_id) if before.adf_run_id else None
        if job is None or job.status not in JOB_MACHINE.terminal or job.result_data is not None:
            state = "has none" if before.adf_run_id is None else "has one that waits, runs or has completed"
            raise AssetState(f"{before.asset_id} needs no new export: it {state}", remedy="approve it as public")
        what = Outside.EXPORT if job.purpose is JobPurpose.EXPORT else Outside.WITHDRAW
        run = await desk.exporter.start(conn, before, what, actor)
        after = await assets.decide(conn, before.evolve(adf_run_id=run))
        await assets.note(conn, Decision.EXPORT_RETRIED, actor, after, before, job_id=run)
    await desk.announce(conn)
    return Outcome(after, Decision.EXPORT_RETRIED, export_job_id=run)


async def _review(
    conn: Connection,
    desk: Desk,
    given: str,
    actor: Actor,
    decide: Decide,
    *,
    reason: str | None = None,
    delete_data: bool = False,
    dry_run: bool = False,
) -> Outcome:
    found = await assets.identify(conn, given)
    run = deletion = None
    stopped: list[str] = []
    async with conn.transaction(force_rollback=dry_run):
        before = await _lock(conn, found.asset_id)
        reviewed = decide(before, await transaction_time(conn))
        if reviewed.outside:
            stopped += await _open_outside(conn, before)
            run = await desk.exporter.start(conn, before, reviewed.outside, actor)
        if not reviewed.asset.active:
            stopped += await _open_job(conn, before)
        if delete_data:
            deletion = await export.delete_data(conn, desk.catalogue, desk.job_queue, before, actor)
        after = await assets.decide(conn, reviewed.asset.evolve(adf_run_id=run or before.adf_run_id))
        await assets.note(conn, reviewed.decision, actor, after, before, reason=reason, job_id=run)
    if not dry_run:
        await desk.announce(conn)
        await desk.cancel(conn, stopped, f"the asset was {reviewed.decision.value.replace('_', ' ')}")
    return Outcome(after, reviewed.decision, reviewed.warnings, run, deletion)


async def _lock(conn: Connection, asset_id: str) -> Asset:
    asset = await assets.lock(conn, asset_id)
    if asset is None:
        raise assets.unknown(asset_id)
    return asset


async def _open_job(conn: Connection, asset: Asset) -> list[str]:
    """The job of the current revision, unless it has ended."""
    if asset.last_request_id is None or asset.processing_status.value not in ("pending", "processing"):
        return []
    found = await assets.identify(conn, asset.last_request_id)
    return [found.job_id] if found.job_id else []


async def _open_outside(conn: Connection, asset: Asset) -> list[str]:
    """The export or withdrawal that is under way."""
    if asset.adf_run_id is None:
        return []
    job = await jobs.find(conn, asset.adf_run_id)
    return [] if job and job.status in JOB_MACHINE.terminal else [asset.adf_run_id]
