"""Routes of callbacks. A submitter sees and sends those of its platform's requests only."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.callbacks import CallbackFilters, CallbackPage, CallbackView
from geomill.domain.access.operator_audit import OperatorAction
from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.visibility import Sight, sight_of
from geomill.domain.engine.callback import Callback
from geomill.errors import NotFoundError
from geomill.store import callbacks, operator_audit
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/v1", tags=["callbacks"], responses=problem_responses(503))

JobInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
SOON_SECONDS = 30.0
"""A callback that is due within that time may be under way: an attempt takes as long at most."""


@router.get("/callbacks", summary="List callbacks, the newest first")
async def list_callbacks(
    gateway: TheGateway, principal: ThePrincipal, filters: Annotated[CallbackFilters, Query()]
) -> CallbackPage:
    """Lists the calls that were made, or will be made, because a job has ended."""
    sight = sight_of(principal)
    before = cursors.decode(filters.cursor) if filters.cursor else None
    if not _sees_any(sight):
        return CallbackPage(callbacks=[])
    async with gateway.connection() as conn:
        listed = await callbacks.page(
            conn, platform_id=sight.platform_id, status=filters.status, limit=filters.limit + 1, before=before
        )
    page, more = listed[: filters.limit], len(listed) > filters.limit
    return CallbackPage(
        callbacks=[_view(callback, sight) for callback in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].delivery_id) if more else None,
    )


@router.get("/jobs/{job_id}/callback", summary="Get the callback of a job", responses=problem_responses(404))
async def get_callback(gateway: TheGateway, principal: ThePrincipal, job_id: JobInPath) -> CallbackView:
    """Returns the callback of the job's latest run that has ended."""
    sight = sight_of(principal)
    async with gateway.connection() as conn:
        return _view(await _latest(conn, job_id, sight), sight)


@router.post(
    "/callbacks/{job_id}/send", status_code=202, summary="Send a callback again", responses=problem_responses(404)
)
async def send_callback(gateway: TheGateway, principal: ThePrincipal, job_id: JobInPath) -> CallbackView:
    """An orchestrator makes the call within seconds and repeats it for up to a day. A callback that is due within
    30 seconds stays as it is."""
    sight = _sight_for_sending(principal)
    async with gateway.connection() as conn, conn.transaction():
        callback = await _latest(conn, job_id, sight)
        if again := await callbacks.send_again(conn, callback, SOON_SECONDS):
            await operator_audit.add(
                conn, OperatorAction.CALLBACK_SENT, job_id, principal.subject, delivery_id=callback.delivery_id
            )
    return _view(again or callback, sight)


def _sight_for_sending(principal: Principal) -> Sight:
    """Return the callbacks that a caller may send. To see those of others, as a reader does, is not enough."""
    if principal.has(Role.OPERATOR):
        return Sight(everything=True)
    return Sight(platform_id=principal.platform_id)


async def _latest(conn: Connection, job_id: str, sight: Sight) -> Callback:
    """Return the callback. A foreign one is reported in the same words as one that does not exist."""
    callback = await callbacks.latest(conn, job_id, sight.platform_id) if _sees_any(sight) else None
    if callback is None:
        raise NotFoundError(
            f"there is no callback of a job '{job_id}'",
            remedy="a job has one once it has ended, if it was submitted with a callback_url",
        )
    return callback


def _sees_any(sight: Sight) -> bool:
    """Whether the caller sees any callbacks. In the store, no platform means those of all platforms."""
    return sight.everything or sight.platform_id is not None


def _view(callback: Callback, sight: Sight) -> CallbackView:
    return CallbackView.of(callback, for_partner=not sight.everything)
