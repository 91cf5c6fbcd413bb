"""Routes of partners and reviewers: submissions, status, decisions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.assets import asset_status, decision_made, submission_accepted
from geomill.contract.assets import AssetStatus
from geomill.contract.inputs import ApiInput
from geomill.contract.submissions import (
    Approval,
    DecisionMade,
    PlatformSubmission,
    Rejection,
    Retry,
    Rollback,
    SubmissionAccepted,
    Unpublishing,
)
from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.visibility import sight_of
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.engine.starting import Starter
from geomill.errors import Forbidden
from geomill.platform import review
from geomill.platform.status import standing
from geomill.platform.submit import retry, submit
from geomill.store import assets
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/platform", tags=["platform"], responses=problem_responses(503))

Identifier = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
_DECISION = problem_responses(404, 409)


class SubmitOptions(ApiInput):
    dry_run: bool = False


def actor(request: Request, principal: Principal) -> Actor:
    address = request.client.host if request.client else None
    return Actor(principal.subject, address, Starter.OPERATORS if principal.has(Role.OPERATOR) else Starter.PARTNERS)


@router.post(
    "/submit",
    status_code=202,
    summary="Submit data to be published",
    responses=problem_responses(404, 409),
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
    stored, and the answer describes what would happen."""
    _require_platform(principal, body.platform_id)
    async with gateway.connection() as conn:
        accepted = await submit(
            conn,
            gateway.desk,
            body.submission(),
            actor(request, principal),
            dry_run=options.dry_run,
        )
    if accepted.operation is None or options.dry_run:
        response.status_code = 200
    else:
        response.headers["Location"] = f"/api/platform/status/{accepted.request.request_id}"
    return submission_accepted(accepted, dry_run=options.dry_run)


@router.get("/status/{identifier}", summary="Get the status of an asset", responses=problem_responses(404))
async def get_status(
    gateway: TheGateway, principal: ThePrincipal, request: Request, identifier: Identifier
) -> AssetStatus:
    """The identifier is the id of a request, a job or an asset."""
    async with gateway.connection() as conn:
        asset_standing = await standing(conn, gateway.job_queue, identifier)
    _require_visible(principal, asset_standing.asset.platform_id, identifier)
    links = gateway.links.of(asset_standing.asset, asset_standing.now, str(request.base_url))
    return asset_status(asset_standing, links.links)


@router.post("/retry", status_code=202, summary="Run a failed request again", responses=_DECISION)
async def retry_request(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Retry
) -> SubmissionAccepted:
    """Runs the same request with a new job."""
    async with gateway.connection() as conn:
        await _require_own(conn, principal, decision.identifier)
        accepted = await retry(
            conn, gateway.desk, decision.identifier, actor(request, principal), decision.expected_revision
        )
    return submission_accepted(accepted)


@router.post("/approve", summary="Approve a revision, with its clearance", responses=_DECISION)
async def approve_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Approval
) -> DecisionMade:
    """Approving an approved asset changes its clearance. `public` starts an export; a change from `public` to `ouo`
    starts a withdrawal."""
    async with gateway.connection() as conn:
        outcome = await review.approve(
            conn,
            gateway.desk,
            decision.identifier,
            decision.clearance_level,
            actor(request, principal),
            decision.expected_revision,
        )
    return decision_made(outcome)


@router.post("/reject", summary="Reject a revision", responses=_DECISION)
async def reject_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rejection
) -> DecisionMade:
    """The partner must then submit corrected data with `overwrite`."""
    async with gateway.connection() as conn:
        outcome = await review.reject(
            conn,
            gateway.desk,
            decision.identifier,
            decision.reason,
            actor(request, principal),
            decision.expected_revision,
        )
    return decision_made(outcome)


@router.post("/revoke", summary="Take an approval back", responses=_DECISION)
async def revoke_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rejection
) -> DecisionMade:
    """Removes the asset from every service, including the external zone."""
    async with gateway.connection() as conn:
        outcome = await review.revoke(
            conn,
            gateway.desk,
            decision.identifier,
            decision.reason,
            actor(request, principal),
            decision.expected_revision,
        )
    return decision_made(outcome)


@router.post("/unpublish", summary="Take an asset out of service", responses=_DECISION)
async def unpublish_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Unpublishing
) -> DecisionMade:
    """Removes the asset from every list and service. Submitting it again brings it back as a new revision."""
    async with gateway.connection() as conn:
        outcome = await review.unpublish(
            conn,
            gateway.desk,
            decision.identifier,
            actor(request, principal),
            reason=decision.reason,
            delete_data=decision.delete_data,
            expected_revision=decision.expected_revision,
            dry_run=decision.dry_run,
        )
    return decision_made(outcome, dry_run=decision.dry_run)


@router.post("/rollback", summary="Go back to an earlier revision", responses=_DECISION)
async def roll_back_asset(
    gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Rollback
) -> DecisionMade:
    """Creates a new revision with the outputs of the old one. The new revision waits for review."""
    async with gateway.connection() as conn:
        outcome = await review.rollback(
            conn,
            gateway.desk,
            decision.identifier,
            decision.revision,
            actor(request, principal),
            reason=decision.reason,
            expected_revision=decision.expected_revision,
        )
    return decision_made(outcome)


@router.post("/export/retry", status_code=202, summary="Retry a failed export or withdrawal", responses=_DECISION)
async def retry_export(gateway: TheGateway, principal: ThePrincipal, request: Request, decision: Retry) -> DecisionMade:
    async with gateway.connection() as conn:
        outcome = await review.retry_export(
            conn, gateway.desk, decision.identifier, actor(request, principal), decision.expected_revision
        )
    return decision_made(outcome)


def _require_platform(principal: Principal, platform_id: str) -> None:
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
    _require_platform(principal, asset.platform_id)
