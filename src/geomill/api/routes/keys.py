"""Routes of API keys, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.keys import KeyCreated, KeyFilters, KeyPage, KeyView, NewKey
from geomill.domain.access.api_key import Secret
from geomill.domain.access.operator_audit import OperatorAction
from geomill.domain.access.principal import Principal
from geomill.errors import Forbidden, InputError, NotFoundError, Problem
from geomill.remedies import LIST_KEYS
from geomill.store import keys, operator_audit, platforms
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/v1/keys", tags=["keys"], responses=problem_responses(503))

KeyInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.post("", status_code=201, summary="Create an API key", responses=problem_responses(409))
async def create_key(gateway: TheGateway, principal: ThePrincipal, order: NewKey, response: Response) -> KeyCreated:
    """Returns the key, which is not shown again. It gets no role that the caller does not have."""
    require_own_roles(principal, order)
    secret = Secret.new()
    async with gateway.connection() as conn, conn.transaction():
        await _require_platform(conn, order.platform_id)
        key = await keys.create(
            conn,
            secret,
            name=order.name or secret.key_id,
            roles=order.roles,
            created_by=principal.subject,
            platform_id=order.platform_id,
            expires_seconds=order.expires_seconds,
            may_name=order.may_name,
        )
        await operator_audit.add(
            conn,
            OperatorAction.KEY_CREATED,
            key.key_id,
            principal.subject,
            name=key.name,
            roles=[role.value for role in key.roles],
            platform_id=key.platform_id,
            expires_at=key.expires_at.isoformat() if key.expires_at else None,
        )
    response.headers["Cache-Control"] = "no-store"
    response.headers["Location"] = f"/api/v1/keys/{key.key_id}"
    return KeyCreated.of(key, key=secret.reveal())


@router.get("", summary="List API keys, the newest first")
async def list_keys(gateway: TheGateway, filters: Annotated[KeyFilters, Query()]) -> KeyPage:
    before = cursors.decode(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        listed = await keys.page(conn, revoked=filters.revoked, limit=filters.limit + 1, before=before)
    page, more = listed[: filters.limit], len(listed) > filters.limit
    return KeyPage(
        keys=[KeyView.of(key) for key in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].key_id) if more else None,
    )


@router.get("/{key_id}", summary="Get an API key without its secret", responses=problem_responses(404))
async def get_key(gateway: TheGateway, key_id: KeyInPath) -> KeyView:
    async with gateway.connection() as conn:
        stored = await keys.find(conn, key_id)
    if stored is None:
        raise _unknown(key_id)
    return KeyView.of(stored.key)


@router.delete("/{key_id}", summary="Revoke an API key", responses=problem_responses(404))
async def revoke_key(gateway: TheGateway, principal: ThePrincipal, key_id: KeyInPath) -> KeyView:
    """Gateways refuse the key within ten seconds. Its row stays, because jobs and the audit name it. A key that is
    revoked already stays as it is."""
    async with gateway.connection() as conn, conn.transaction():
        if revoked := await keys.revoke_id(conn, key_id):
            await operator_audit.add(conn, OperatorAction.KEY_REVOKED, key_id, principal.subject, name=revoked.name)
            return KeyView.of(revoked)
        stored = await keys.find(conn, key_id)
    if stored is None:
        raise _unknown(key_id)
    return KeyView.of(stored.key)


def require_own_roles(principal: Principal, order: NewKey) -> None:
    """Raise `Forbidden` if the key would have a role that the caller lacks. The access table admits administrators
    only; this holds should it ever admit others."""
    if lacking := [role.value for role in order.roles if not principal.has(role)]:
        raise Forbidden(f"you cannot give the role {lacking[0]}, which you do not have")


async def _require_platform(conn: Connection, platform_id: str | None) -> None:
    if platform_id is None:
        return
    try:
        await platforms.get(conn, platform_id)
    except NotFoundError as error:
        problem = Problem("platform_id", error.message, error.remedy)
        raise InputError(f"the request is wrong: {error}", problems=[problem]) from None


def _unknown(key_id: str) -> NotFoundError:
    return NotFoundError(f"there is no key '{key_id}'", remedy=LIST_KEYS.http)
