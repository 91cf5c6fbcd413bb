"""The registry of partner applications in the database."""

from __future__ import annotations

from typing import Any

from geomill.domain.assets.platform import Platform
from geomill.domain.jsonvalue import to_json
from geomill.errors import ConflictError, NotFoundError, nearest
from geomill.sql import queries
from geomill.store.pool import Connection


async def everything(conn: Connection, *, inactive: bool = False) -> list[Platform]:
    cursor = await conn.execute(queries("platforms").all, {"inactive": inactive})
    return [Platform.from_row(row) for row in await cursor.fetchall()]


async def get(conn: Connection, platform_id: str) -> Platform:
    row = await (await conn.execute(queries("platforms").get, {"platform_id": platform_id})).fetchone()
    if row is None:
        ids = [platform.platform_id for platform in await everything(conn)]
        raise NotFoundError(f"there is no platform '{platform_id}'", remedy=nearest(platform_id, ids))
    return Platform.from_row(row)


async def lock(conn: Connection, platform_id: str) -> Platform:
    """Return the platform, locked until the transaction ends."""
    row = await (await conn.execute(queries("platforms").lock, {"platform_id": platform_id})).fetchone()
    return Platform.from_row(row) if row else await get(conn, platform_id)


async def create(conn: Connection, fields: dict[str, Any]) -> Platform:
    row = await (await conn.execute(queries("platforms").create, _parameters(fields))).fetchone()
    if row is None:
        raise ConflictError(f"there is already a platform '{fields['platform_id']}'", remedy="change that one")
    return Platform.from_row(row)


async def update(conn: Connection, fields: dict[str, Any]) -> Platform:
    row = await (await conn.execute(queries("platforms").update, _parameters(fields))).fetchone()
    if row is None:
        return await get(conn, fields["platform_id"])
    return Platform.from_row(row)


def _parameters(fields: dict[str, Any]) -> dict[str, Any]:
    lists = ("required_refs", "optional_refs", "workflows", "containers")
    return {**fields, **{name: to_json(fields[name]) for name in lists if fields.get(name) is not None}}
