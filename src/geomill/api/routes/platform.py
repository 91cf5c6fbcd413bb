"""Routes of partners and reviewers: submissions, status, decisions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from geomill.api import lookup
from geomill.api.access import RULES, ThePrincipal
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.problems import problem_responses
from geomill.api.rehearsal import rehearse
from geomill.api.views.assets import (
    asset_status,
    decision_made,
    plain_job,
    stage_job_without_asset,
    submission_accepted,
)
from geomill.contract.assets import AssetStatus, JobWithoutAsset
from geomill.contract.inputs import ApiInput
from geomill.contract.submissions import (
    Approval,
    DecisionMade,
    PlatformSubmission,
    Rejection,
    RequestRetry,
    Retry,
    Rollback,
    SubmissionAccepted,
    Unpublishing,
)
from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.visibility import sight_of
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.engine.starting import Starter
from geomill.errors import Forbidden, NotFoundError
from geomill.platform import review
from geomill.platform.retrying import retry
from geomill.platform.status import standing
from geomill.platform.submit import submit
from geomill.store import assets, stage_jobs
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/platform", tags=["platform"], responses=problem_responses(503))

Identifier = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
_DECISION = problem_responses(404, 409)


REPEATED = {"model": SubmissionAccepted, "description": "The request exists already, or this is a dry run"}
SUBMITTED: dict[int | str, Any] = {200: REPEATED, **problem_responses(404, 409)}


class SubmitOptions(ApiInput):
    dry_run: bool = False
    inspect: bool = Field(default=True, description="Whether a dry run looks into the files")


def actor(request: Request, principal: Principal, on_behalf_of: str | None) -> Actor:
    """Return who acts. The credential says who it is; the body may name a person for whom."""
    return Actor(
        principal.subject,
        request.client.host if request.client else None,
        Starter.OPERATORS if principal.has(Role.OPERATOR) else Starter.PARTNERS,
        principal.named(on_behalf_of),
    )


@router.post(
    "/submit",
    status_code=202,
    summary="Submit data to be published",
    responses=SUBMITTED,
)
async def submit_data(
    gateway: TheGateway,
    principal: ThePrincipal,
    request: Request,
    response: Response,
    body: PlatformSubmission,
    options: Annotated[SubmitOptions, Query()],
) -> SubmissionAccepted:
    """Answers at once; a job does the work. A refused submission leaves nothing behind. With `dry_run=true` nothing is
    stored, and the answer describes what would happen, with a look into the first files."""
    require_platform(principal, body.platform_id)
    submission, who = body.submission(), actor(request, principal, body.on_behalf_of)
    if options.dry_run:
        response.status_code = 200
        return await rehearse(gateway, submission, who, inspect=options.inspect)
    async with gateway.connection() as conn:
        accepted = await submit(conn, gateway.desk, submission, who)
    if accepted.operation is None:
        response.status_code = 200
    else:
        response.headers["Location"] = f"/api/platform/status/{accepted.request.request_id}"
    return submission_accepted(accepted)


@router.get("/status/{identifier}", summary="Get the status of an asset", responses=problem_responses(404))
async def get_status(
    gateway: TheGateway, principal: ThePrincipal, request: Request, identifier: Identifier
) -> AssetStatus | JobWithoutAsset:
    """The identifier is the id of a request, a job or an asset. For a job that belongs to no asset, the answer says
    where its status is, if the caller may see jobs."""
    async with gateway.connection() as conn:
        try:
            asset_standing = await standing(conn, gateway.job_queue, identifier)
        except NotFoundError:
            if job := await _job_without_asset(conn, gateway, principal, identifier):
                return job
            raise
    _require_visible(principal, asset_standing.asset.platform_id, identifier)
    links = gateway.links.of(asset_standing.asset, asset_standing.now, str(request.base_url))
    return asset_status(asset_standing, links.links)


@router.post("/retry", status_code=202, summary="Run a failed request again", responses=_DECISION)
async def retry_request(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: RequestRetry
) -> SubmissionAccepted:
    """Runs the same request with a new job. With other `processing_options`, runs a new request for the same revision
    and the same files, so a failed validation uses up no revision."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        await _require_own(conn, principal, decision.identifier)
        accepted = await retry(
            conn, gateway.desk, decision.identifier, who, decision.expected_revision, decision.processing_options
        )
    return submission_accepted(accepted)


@router.post("/approve", summary="Approve a revision, with its clearance", responses=_DECISION)
async def approve_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Approval
) -> DecisionMade:
    """Approving an approved asset changes its clearance. `public` starts an export; a change from `public` to `ouo`
    starts a withdrawal."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.approve(
            conn,
            gateway.desk,
            decision.identifier,
            decision.clearance_level,
            who,
            decision.expected_revision,
        )
    return decision_made(outcome, who)


@router.post("/reject", summary="Reject a revision", responses=_DECISION)
async def reject_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rejection
) -> DecisionMade:
    """The partner must then submit corrected data with `overwrite`."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.reject(
            conn,
            gateway.desk,
            decision.identifier,
            decision.reason,
            who,
            decision.expected_revision,
        )
    return decision_made(outcome, who)


@router.post("/revoke", summary="Take an approval back", responses=_DECISION)
async def revoke_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rejection
) -> DecisionMade:
    """Removes the asset from every service, including the external zone."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.revoke(
            conn,
            gateway.desk,
            decision.identifier,
            decision.reason,
            who,
            decision.expected_revision,
        )
    return decision_made(outcome, who)


@router.post("/unpublish", summary="Take an asset out of service", responses=_DECISION)
async def unpublish_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Unpublishing
) -> DecisionMade:
    """Removes the asset from every list and service. Submitting it again brings it back as a new revision."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.unpublish(
            conn,
            gateway.desk,
            decision.identifier,
            who,
            reason=decision.reason,
            delete_data=decision.delete_data,
            expected_revision=decision.expected_revision,
            dry_run=decision.dry_run,
        )
    return decision_made(outcome, who, dry_run=decision.dry_run)


@router.post("/rollback", summary="Go back to an earlier revision", responses=_DECISION)
async def roll_back_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rollback
) -> DecisionMade:
    """Creates a new revision with the outputs of the old one. The new revision waits for review."""
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.rollback(
            conn,
            gateway.desk,
            decision.identifier,
            decision.revision,
            who,
            reason=decision.reason,
            expected_revision=decision.expected_revision,
        )
    return decision_made(outcome, who)


@router.post("/export/retry", status_code=202, summary="Retry a failed export or withdrawal", responses=_DECISION)
async def retry_export(gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Retry) -> DecisionMade:
    who = actor(request, principal, decision.on_behalf_of)
    async with gateway.connection() as conn:
        outcome = await review.retry_export(conn, gateway.desk, decision.identifier, who, decision.expected_revision)
    return decision_made(outcome, who)


async def _job_without_asset(
    conn: Connection, gateway: Gateway, principal: Principal, identifier: str
) -> JobWithoutAsset | None:
    """Return where to look for a job, for callers who may see jobs. None for others, and if there is no such job."""
    if not RULES["GET /api/v1/jobs/{job_id}"].admits(principal):
        return None
    run = await stage_jobs.of_run(conn, identifier)
    if attempts := await stage_jobs.attempts(conn, gateway.job_queue, run.job_id if run else identifier, limit=1):
        return stage_job_without_asset(attempts[0])
    job = await lookup.find(conn, gateway.job_queue, identifier)
    return plain_job(job) if job else None


def require_platform(principal: Principal, platform_id: str) -> None:
    """Raise if the caller submits for another platform. A caller who may read other platforms' data still submits only
    for its own."""
    if not principal.has(Role.OPERATOR) and principal.platform_id != platform_id:
        raise Forbidden(
            f"this credential may submit only for the platform '{principal.platform_id}', not for '{platform_id}'"
        )


def _require_visible(principal: Principal, platform_id: str, identifier: str) -> None:
    """Raise `NotFoundError` for another platform's asset, so that its existence is not revealed."""
    if not sight_of(principal).covers(platform_id):
        raise assets.unknown(identifier)


async def _require_own(conn: Connection, principal: Principal, identifier: str) -> None:
    asset = await assets.get(conn, (await assets.identify(conn, identifier)).asset_id)
    _require_visible(principal, asset.platform_id, identifier)
    require_platform(principal, asset.platform_id)
