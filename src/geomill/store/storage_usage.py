"""The use of storage by assets, from their inventories. Statements are limited in time, since they read many rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from geomill.sql import queries
from geomill.store.pool import Connection

PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ZoneUsage:
    """The files of one platform in one zone."""

    zone: str
    platform_id: str
    assets: int
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FeatureUsage:
    tables: int
    bytes: int


@dataclass(frozen=True, slots=True)
class AssetUsage:
    asset_id: str
    platform_id: str
    data_type: str
    revision: int
    deleted_at: datetime | None
    created_at: datetime
    revisions: int
    objects: int
    bytes: int
    table_bytes: int
    external_objects: int
    external_bytes: int


async def zones(conn: Connection) -> list[ZoneUsage]:
    return [ZoneUsage(**row) for row in await _rows(conn, queries("storage").zones)]


async def features(conn: Connection) -> FeatureUsage:
    (row,) = await _rows(conn, queries("storage").features)
    return FeatureUsage(**row)


async def assets(
    conn: Connection, *, platform_id: str | None, limit: int, before: tuple[datetime, str] | None = None
) -> list[AssetUsage]:
    """Return assets, the newest first. `before` is the creation time and id of the last one of the page before."""
    moment, asset_id = before or (None, None)
    parameters = {"platform_id": platform_id, "limit": limit, "before": moment, "before_id": asset_id}
    return [AssetUsage(**row) for row in await _rows(conn, queries("storage").assets, parameters)]


async def limit_time(conn: Connection) -> None:
    """Limit the time of each further statement of the transaction."""
    await conn.execute(queries("metrics").limit_time, {"milliseconds": int(PATIENCE_SECONDS * 1000)})


async def _rows(
    conn: Connection, statement: LiteralString, parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    async with conn.transaction():
        await limit_time(conn)
        return await (await conn.execute(statement, parameters)).fetchall()
