"""Views of assets, submissions and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geomill.api.lookup import JobStanding
from geomill.api.views.jobs import progress_of
from geomill.contract.assets import AssetStatus, AssetView, ExportView, FailureView, JobWithoutAsset
from geomill.contract.inspection import Inspection
from geomill.contract.jobs import QUEUED, Progress
from geomill.contract.submissions import DecisionMade, SubmissionAccepted
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.naming import blob_prefix
from geomill.domain.engine.job import Job, JobPurpose
from geomill.domain.engine.stage_job import workflow_id
from geomill.platform.review import ReviewOutcome
from geomill.platform.status import AssetStanding
from geomill.platform.submit import Accepted
from geomill.remedies import OVERWRITE, RETRY_EXPORT, RETRY_REQUEST, RETRY_WITH_OPTIONS, Channel, worded
from geomill.store.progress import JobProgress
from geomill.store.stage_jobs import StageJobAttempt


def submission_accepted(
    accepted: Accepted, *, dry_run: bool = False, inspections: Sequence[Inspection] = ()
) -> SubmissionAccepted:
    request, asset = accepted.request, accepted.asset
    would = None
    if dry_run and accepted.message:
        would = {
            "stac_item_id": asset.stac_item_id,
            "stac_collection_id": asset.stac_collection_id,
            "blob_prefix": blob_prefix(asset.blob_stem, asset.revision),
            "input_params": accepted.message.input_params,
        }
    return SubmissionAccepted(
        request_id=request.request_id,
        asset_id=request.asset_id,
        job_id=request.job_id,
        status=request.status.value,
        operation=accepted.operation.value if accepted.operation else "repeated",
        revision=request.revision,
        workflow_id=request.workflow_id,
        monitor_url=f"/api/platform/status/{request.request_id}",
        warnings=accepted.warnings,
        dry_run=dry_run,
        would=would,
        inspections=list(inspections),
    )


def decision_made(outcome: ReviewOutcome, actor: Actor, *, dry_run: bool = False) -> DecisionMade:
    asset = outcome.asset
    return DecisionMade(
        asset_id=asset.asset_id,
        decision=outcome.decision.value if outcome.decision else "unchanged",
        revision=asset.revision,
        approval_state=asset.approval_state.value,
        clearance_state=asset.clearance_state.value,
        deleted=not asset.active,
        reviewer=asset.reviewer,
        decided_by=actor.name,
        on_behalf_of=actor.on_behalf_of,
        dry_run=dry_run,
        warning="; ".join(outcome.warnings) or None,
        action_required="wait for the job export_job_id" if outcome.warnings and outcome.export_job_id else None,
        export_job_id=outcome.export_job_id,
        delete_job_id=outcome.delete_job_id,
        would=outcome.would,
        status_url=f"/api/platform/status/{asset.asset_id}",
    )


def asset_status(standing: AssetStanding, served: Mapping[str, str]) -> AssetStatus:
    """`served` are the links under which the asset is served."""
    asset, request = standing.asset, standing.request
    progress = progress_of(standing.progress, standing.now) if standing.progress else Progress.queued(standing.waits)
    return AssetStatus(
        status=standing.status,
        request_id=request.request_id if request else None,
        job_id=standing.job_id,
        asset_id=asset.asset_id,
        asset=AssetView.of(asset),
        retry_count=request.retry_count if request else 0,
        progress=progress,
        eta=progress.eta or asset.estimated_completion_at,
        outputs=asset.outputs or {},
        links={**_links(standing), **served},
        error=_failure(standing),
        warnings=asset.warnings,
        export=_export(standing),
        revision=asset.revision,
        processing_status=asset.processing_status.value,
        approval_state=asset.approval_state.value,
        clearance_state=asset.clearance_state.value,
    )


def plain_job(standing: JobStanding) -> JobWithoutAsset:
    """Return where to look for a job that belongs to no asset."""
    order = standing.job if isinstance(standing, JobProgress) else standing
    status = standing.job.status.value if isinstance(standing, JobProgress) else QUEUED
    return JobWithoutAsset(
        kind="job",
        status=status,
        job_id=order.job_id,
        workflow_id=order.workflow_id,
        message=f"this is a job of the workflow '{order.workflow_id}': see status_url",
        status_url=f"/api/v1/jobs/{order.job_id}",
    )


def stage_job_without_asset(attempt: StageJobAttempt) -> JobWithoutAsset:
    run = attempt.run
    return JobWithoutAsset(
        kind="stage_job",
        status=attempt.status.value,
        job_id=run.job_id,
        workflow_id=workflow_id(run.job_type),
        message=f"this is a stage job of the type '{run.job_type}': see status_url",
        status_url=f"/api/jobs/status/{run.job_id}",
    )


def _links(standing: AssetStanding) -> dict[str, str]:
    links = {"asset": f"/api/assets/{standing.asset.asset_id}"}
    if standing.job_id:
        job = f"/api/v1/jobs/{standing.job_id}"
        links |= {"job": job, "events": f"{job}/events", "stream": f"{job}/stream"}
    return links


def _failure(standing: AssetStanding) -> FailureView | None:
    """Return the error of the request, or of a job without a request."""
    job = standing.progress.job if standing.progress else None
    message = standing.request.last_error if standing.request else job.error_message if job else None
    if message is None:
        return None
    return FailureView(
        message=worded(message, Channel.HTTP), node=job.failed_node_id if job else None, remedy=_remedy(standing, job)
    )


def _remedy(standing: AssetStanding, job: Job | None) -> str:
    """Return what may help. Against an error that the step itself calls final, only a retry with other options may."""
    if job and job.purpose is not JobPurpose.PROCESS:
        return RETRY_EXPORT.http
    fix = f"fix the file and {OVERWRITE.http}"
    return f"{(RETRY_WITH_OPTIONS if standing.final else RETRY_REQUEST).http}, or {fix}"


def _export(standing: AssetStanding) -> ExportView:
    return ExportView(
        job_id=standing.asset.adf_run_id,
        status=standing.outside_status,
        error=standing.outside.error_message if standing.outside else None,
        external_revision=standing.asset.external_revision,
        files=standing.asset.external_files or [],
    )
