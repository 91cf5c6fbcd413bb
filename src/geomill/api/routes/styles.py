"""Routes of the styles of an asset."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.styles import style_view, styles_of
from geomill.contract.styles import NewStyle, StylesView, StyleView
from geomill.domain.access.principal import Principal, Role
from geomill.domain.access.visibility import sight_of
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.foreign_style import StyleLanguage, convert_style
from geomill.domain.assets.foreign_xml import NotConvertible
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.style import DEFAULT, STYLE_NAME, RasterStyle, VectorStyle
from geomill.domain.engine.starting import Starter
from geomill.errors import InputError, NotFoundError, Problem
from geomill.platform.styles import delete_style, put_style
from geomill.store import assets, styles
from geomill.store.pool import Connection

router = APIRouter(prefix="/api/assets/{asset_id}/styles", tags=["styles"], responses=problem_responses(404, 503))

AssetId = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
StyleName = Annotated[
    str, Path(pattern=STYLE_NAME, description="Small letters, digits, `_` and `-`; `default` and `automatic` are taken")
]


@router.get("", summary="List the styles of an asset")
async def list_styles(gateway: TheGateway, principal: ThePrincipal, asset_id: AssetId) -> StylesView:
    """Each style has its legend and, for a vector, layers of MapLibre. The style `automatic` is the one that geomill
    computes from the data."""
    async with gateway.connection() as conn:
        asset = await _visible(conn, principal, asset_id)
        return styles_of(asset, await styles.of_asset(conn, asset_id))


@router.get("/{name}", summary="Get a style of an asset")
async def get_style(gateway: TheGateway, principal: ThePrincipal, asset_id: AssetId, name: StyleName) -> StyleView:
    view = await list_styles(gateway, principal, asset_id)
    chosen_name = view.default if name == DEFAULT else name
    for style in view.styles:
        if style.name == chosen_name:
            return style
    names = ", ".join(style.name for style in view.styles)
    raise NotFoundError(f"the asset '{asset_id}' has no style '{name}'", remedy=f"use one of {names}")


@router.put("/{name}", summary="Add or replace a style of an asset", responses=problem_responses(409))
async def put(
    gateway: TheGateway,
    principal: ThePrincipal,
    request: Request,
    asset_id: AssetId,
    name: StyleName,
    body: NewStyle,
) -> StyleView:
    """Submitters may do it for assets of their platform, reviewers and operators for all. It takes effect at once, in
    the external zone too, and holds for all later revisions."""
    style, lost = converted(body)
    async with gateway.connection() as conn:
        await _visible(conn, principal, asset_id)
        actor = _actor(request, principal)
        asset_style, warnings = await put_style(
            conn, gateway.desk, asset_id, name, style, actor, is_default=body.default
        )
    return style_view(name, style, asset_style, is_default=asset_style.is_default, warnings=[*lost, *warnings])


@router.delete("/{name}", status_code=204, summary="Delete a style of an asset", responses=problem_responses(409))
async def delete(
    gateway: TheGateway, principal: ThePrincipal, request: Request, asset_id: AssetId, name: StyleName
) -> Response:
    """A style that came with the data is not deleted; give the asset another default instead."""
    async with gateway.connection() as conn:
        await _visible(conn, principal, asset_id)
        await delete_style(conn, gateway.desk, asset_id, name, _actor(request, principal))
    return Response(status_code=204)


def converted(body: NewStyle) -> tuple[RasterStyle | VectorStyle, list[str]]:
    """Return the style of a request, and what was lost on the way from QML or SLD."""
    if body.style is not None:
        return body.style, []
    language, text = (StyleLanguage.QML, body.qml) if body.qml is not None else (StyleLanguage.SLD, body.sld or "")
    try:
        return convert_style(language, text)
    except NotConvertible as error:
        hint = "write the style as JSON in the field style"
        problem = Problem(language.value, f"cannot be converted: {error}", hint)
        raise InputError(f"the request is wrong: {problem}", problems=[problem]) from error


def _actor(request: Request, principal: Principal) -> Actor:
    starter = Starter.OPERATORS if principal.has(Role.OPERATOR) else Starter.PARTNERS
    return Actor(principal.subject, request.client.host if request.client else None, starter)


async def _visible(conn: Connection, principal: Principal, asset_id: str) -> Asset:
    asset = await assets.get(conn, asset_id)
    if not sight_of(principal).covers(asset.platform_id):
        raise assets.unknown(asset_id)
    return asset
