"""Routes of the registry of partner applications."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.inputs import ApiInput
from geomill.contract.platforms import (
    CHANGEABLE,
    NewPlatform,
    PlatformChanges,
    PlatformPage,
    PlatformReplacement,
    require_distinct,
)
from geomill.domain.access.operator_audit import OperatorAction
from geomill.domain.access.principal import Principal
from geomill.domain.access.visibility import sight_of
from geomill.domain.assets.platform import Platform, own_container
from geomill.errors import ConflictError, InputError, Problem
from geomill.store import operator_audit, platforms
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/platforms", tags=["platforms"], responses=problem_responses(503))

PlatformName = Annotated[str, Path(max_length=50, pattern=r"^[^\x00]+$")]


class PlatformFilters(ApiInput):
    inactive: bool = False


@router.get("", summary="List partner applications and their identifiers")
async def list_platforms(
    gateway: TheGateway, principal: ThePrincipal, filters: Annotated[PlatformFilters, Query()]
) -> PlatformPage:
    """Omits the workflows and containers of other platforms."""
    async with gateway.connection() as conn:
        registered = await platforms.everything(conn, inactive=filters.inactive)
    return PlatformPage(platforms=[_as_seen_by(principal, platform) for platform in registered])


@router.get("/{platform_id}", summary="Get a partner application", responses=problem_responses(404))
async def get_platform(gateway: TheGateway, principal: ThePrincipal, platform_id: PlatformName) -> Platform:
    async with gateway.connection() as conn:
        return _as_seen_by(principal, await platforms.get(conn, platform_id))


@router.post("", status_code=201, summary="Register a partner application", responses=problem_responses(409))
async def create_platform(gateway: TheGateway, new_platform: NewPlatform, response: Response) -> Platform:
    """The container with the platform's name must not already belong to another platform."""
    async with gateway.connection() as conn:
        await _require_free_container(conn, new_platform.platform_id)
        created = await platforms.create(conn, new_platform.model_dump())
    response.headers["Location"] = f"/api/platforms/{created.platform_id}"
    return created


@router.patch("/{platform_id}", summary="Change a partner application", responses=problem_responses(404, 409))
async def change_platform(
    gateway: TheGateway, principal: ThePrincipal, platform_id: PlatformName, changes: PlatformChanges
) -> Platform:
    """Changes only the fields that are named. The required identifiers never change."""
    return await _change(gateway, principal, platform_id, changes)


@router.put("/{platform_id}", summary="Replace a partner application", responses=problem_responses(404, 409))
async def replace_platform(
    gateway: TheGateway, principal: ThePrincipal, platform_id: PlatformName, replacement: PlatformReplacement
) -> Platform:
    """Needs all fields, so that none is erased because it was forgotten. The required identifiers never change."""
    missing = [name for name in CHANGEABLE if name not in replacement.model_fields_set]
    if missing:
        hint = f"PATCH /api/platforms/{platform_id} changes only the fields that are named"
        problems = [Problem(name, "is missing; PUT needs all fields", hint) for name in missing]
        raise InputError(f"the request is wrong: {problems[0]}", problems=problems)
    return await _change(gateway, principal, platform_id, replacement)


async def _change(gateway: TheGateway, principal: Principal, platform_id: str, changes: PlatformChanges) -> Platform:
    fields = changes.named()
    if not fields:
        problems = [Problem("", "there is nothing to change", f"name one of {', '.join(CHANGEABLE)}")]
        raise InputError(f"the request is wrong: {problems[0]}", problems=problems)
    async with gateway.connection() as conn, conn.transaction():
        platform = await platforms.lock(conn, platform_id)
        _require_expected(platform, changes)
        if "optional_refs" in fields:
            _require_distinct_refs(platform, changes)
        current = {name: getattr(platform, name) for name in CHANGEABLE}
        changed = await platforms.update(conn, {"platform_id": platform_id, **current, **fields})
        differing = {name: fields[name] for name in fields if getattr(platform, name) != getattr(changed, name)}
        if differing:
            await operator_audit.add(
                conn,
                OperatorAction.PLATFORM_CHANGED,
                platform_id,
                principal.subject,
                before={name: getattr(platform, name) for name in differing},
                after=differing,
            )
        return changed


def _require_expected(platform: Platform, changes: PlatformChanges) -> None:
    expected = changes.expected_updated_at
    if expected is not None and expected != platform.updated_at:
        raise ConflictError(
            f"the platform '{platform.platform_id}' was changed at {platform.updated_at.isoformat()}",
            remedy="read it again, and send the change with its updated_at as expected_updated_at",
        )


def _require_distinct_refs(platform: Platform, changes: PlatformChanges) -> None:
    try:
        require_distinct(platform.required_refs, changes.optional_refs)
    except ValueError as error:
        raise InputError(f"the request is wrong: {error}", problems=[Problem("optional_refs", str(error))]) from None


async def _require_free_container(conn: Connection, platform_id: str) -> None:
    container = own_container(platform_id)
    for platform in await platforms.everything(conn, inactive=True):
        if platform.platform_id != platform_id and container in platform.containers:
            raise ConflictError(
                f"the container '{container}', which '{platform_id}' would get, belongs to the platform"
                f" '{platform.platform_id}'",
                remedy="choose another platform_id, or remove the container from that platform first",
            )


def _as_seen_by(principal: Principal, platform: Platform) -> Platform:
    if sight_of(principal).covers(platform.platform_id):
        return platform
    return platform.evolve(workflows=None, containers=[])
