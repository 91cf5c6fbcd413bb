"""Changes of an asset's styles. Each is one transaction: style, audit line, catalogue entry and external zone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from geomill.catalogue import pending
from geomill.catalogue.external import exported_asset, restyle
from geomill.catalogue.following import follow_decision
from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.style import (
    LARGEST_STYLE,
    MOST_STYLES,
    RESERVED,
    AssetStyle,
    RasterStyle,
    VectorStyle,
)
from geomill.errors import AssetState, ConflictError, InputError, NotFoundError, Problem, UnavailableError, nearest
from geomill.platform.desk import HIDE_SECONDS, Desk
from geomill.store import assets, styles
from geomill.store.pool import Connection

_BAND = re.compile(r"\bb([0-9]+)\b")


async def put_style(
    conn: Connection,
    desk: Desk,
    asset_id: str,
    name: str,
    style: RasterStyle | VectorStyle,
    actor: Actor,
    *,
    is_default: bool,
) -> tuple[AssetStyle, list[str]]:
    """Add or replace a style. Returns it, and warnings."""

    async def change(asset: Asset) -> AssetStyle:
        await asyncio.to_thread(check_style, asset, name, style)
        names = {asset_style.name for asset_style in await styles.of_asset(conn, asset_id)}
        if name not in names and len(names) >= MOST_STYLES:
            raise ConflictError(f"the asset has {MOST_STYLES} styles, and cannot have more", remedy="delete one first")
        return await styles.put(conn, asset_id, name, style, is_default=is_default, updated_by=actor.name)

    asset, asset_style = await _change(conn, desk, asset_id, actor, f"the style {name} was put", change)
    return asset_style, list(_warnings(asset, style))


async def delete_style(conn: Connection, desk: Desk, asset_id: str, name: str, actor: Actor) -> None:
    async def change(asset: Asset) -> AssetStyle:
        removed = await styles.remove(conn, asset.asset_id, name)
        if removed is None:
            names = [asset_style.name for asset_style in await styles.of_asset(conn, asset_id)]
            raise NotFoundError(f"nobody has given the asset a style '{name}'", remedy=nearest(name, names))
        return removed

    await _change(conn, desk, asset_id, actor, f"the style {name} was deleted", change)


async def _change(
    conn: Connection,
    desk: Desk,
    asset_id: str,
    actor: Actor,
    text: str,
    change: Callable[[Asset], Coroutine[Any, Any, AssetStyle]],
) -> tuple[Asset, AssetStyle]:
    async with conn.transaction():
        asset = await assets.lock(conn, asset_id)
        if asset is None:
            raise assets.unknown(asset_id)
        if not asset.active:
            raise AssetState(f"the asset {asset_id} is unpublished", remedy="submit it again first")
        style = await change(asset)
        await assets.note(conn, AuditDecision.STYLED, actor, asset, asset, reason=text)
        await pending.note(conn, asset_id, text)
        await follow_decision(conn, asset_id, withhold=False)
        await _outside(conn, desk, asset)
    return asset, style


async def _outside(conn: Connection, desk: Desk, asset: Asset) -> None:
    """Change the exported asset too. If the external zone does not answer, nothing changes inside either."""
    if desk.outside is None or asset.external_revision is None or asset.public_revision is None:
        return
    shown = await exported_asset(conn, asset.asset_id, asset.external_revision)
    try:
        async with asyncio.timeout(HIDE_SECONDS):
            await restyle(desk.outside, shown)
    except (TimeoutError, PoolTimeout, psycopg.Error) as error:
        raise UnavailableError(
            "the external zone does not answer, so the style was not changed", remedy="try again in a moment"
        ) from error


def check_style(asset: Asset, name: str, style: RasterStyle | VectorStyle) -> None:
    """Raise `InputError` if the style does not fit the asset."""
    if name in RESERVED:
        raise _wrong("name", f"the name '{name}' is reserved", "choose another name")
    if style.kind != asset.data_type.value:
        raise _wrong("style.kind", f"must be {asset.data_type.value}, as the asset is, not {style.kind}")
    if len(style.model_dump_json(exclude_none=True)) > LARGEST_STYLE:
        raise _wrong("style", f"must have at most {LARGEST_STYLE} bytes as JSON")
    if isinstance(style, RasterStyle):
        _check_raster(style, _band_count(asset))


def _check_raster(style: RasterStyle, count: int | None) -> None:
    from rio_tiler.colormap import cmap  # heavy, and needed here only

    if style.colormap_name and style.colormap_name not in cmap.list():
        hint = nearest(style.colormap_name, cmap.list())
        raise _wrong("style.colormap_name", f"there is no colormap '{style.colormap_name}'", hint)
    field = "style.expression" if style.expression else "style.bidx"
    bands = [int(band) for band in _BAND.findall(style.expression or "")] + list(style.bidx or ())
    if count is not None and any(not 1 <= band <= count for band in bands):
        raise _wrong(field, f"the raster has {count} bands, so it has no band {max(bands)}")
    if style.expression:
        _check_expression(style.expression, max(bands, default=0))


def _check_expression(expression: str, bands: int) -> None:
    """Compute the expression once, so that no tile fails by it later."""
    import numpy as np
    from rio_tiler.errors import RioTilerError
    from rio_tiler.expression import apply_expression, get_expression_blocks

    names = [f"b{band}" for band in range(1, bands + 1)]
    try:
        apply_expression(get_expression_blocks(expression), names, np.ones((bands, 1, 1)))
    except (RioTilerError, SyntaxError, TypeError, ValueError, KeyError, NotImplementedError, AttributeError) as error:
        raise _wrong("style.expression", f"cannot be computed: {str(error)[:200]}") from None


def _band_count(asset: Asset) -> int | None:
    """Return the number of bands of the served revision. None if it is not known, and for a series, whose scenes may
    differ."""
    outputs = asset.outputs or {}
    statistics = outputs.get("statistics")
    return len(statistics) if isinstance(statistics, list) and statistics and "scenes" not in outputs else None


def _warnings(asset: Asset, style: RasterStyle | VectorStyle) -> list[str]:
    columns = (asset.outputs or {}).get("columns")
    if asset.data_type is not DataType.VECTOR or not isinstance(style, VectorStyle) or not style.attribute:
        return []
    names = [str(column.get("name")) for column in columns or () if isinstance(column, dict)]
    if not names or style.attribute in names:
        return []
    hint = nearest(style.attribute, names)
    return [f"the layer has no column '{style.attribute}', so no class applies" + (f": {hint}" if hint else "")]


def _wrong(field: str, message: str, hint: str = "") -> InputError:
    problem = Problem(field, message, hint)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
