"""Named styles of assets in the database."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.domain.assets.style import AssetStyle
from geomill.domain.jsonvalue import to_json
from geomill.sql import queries
from geomill.store.pool import Connection


async def of_asset(conn: Connection, asset_id: str) -> list[AssetStyle]:
    cursor = await conn.execute(queries("styles").of_asset, {"asset_id": asset_id})
    return [AssetStyle.from_row(row) for row in await cursor.fetchall()]


async def book(conn: Connection, asset_id: str) -> dict[str, Any]:
    """Return the styles of an asset as `StyleBook.of` takes them."""
    row = await (await conn.execute(queries("styles").book, {"asset_id": asset_id})).fetchone()
    assert row is not None
    own_styles: dict[str, Any] = row["book"]
    return own_styles


async def put(
    conn: Connection, asset_id: str, name: str, style: BaseModel, *, is_default: bool, updated_by: str
) -> AssetStyle:
    """Add or replace a style. If it is the default, no other one is."""
    if is_default:
        await conn.execute(queries("styles").forget_default, {"asset_id": asset_id, "name": name})
    parameters = {
        "asset_id": asset_id,
        "name": name,
        "is_default": is_default,
        "style": to_json(_stored(style)),
        "updated_by": updated_by,
    }
    row = await (await conn.execute(queries("styles").put, parameters)).fetchone()
    assert row is not None
    return AssetStyle.from_row(row)


def _stored(style: BaseModel) -> dict[str, Any]:
    """Return the style as its row has it. Full opacity is left out, because an older process knows no opacity and would
    ignore the style."""
    document = style.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in document.items() if (name, value) != ("opacity", 1.0)}


async def remove(conn: Connection, asset_id: str, name: str) -> AssetStyle | None:
    """Remove a style. Returns it, or None if there was none."""
    row = await (await conn.execute(queries("styles").remove, {"asset_id": asset_id, "name": name})).fetchone()
    return AssetStyle.from_row(row) if row else None
