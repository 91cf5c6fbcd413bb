"""Orders in the database: `ctx.orders` of the handlers that export, withdraw or delete an asset's data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.sql import SQL, Identifier

from geomill.domain.assets import inventory
from geomill.domain.assets.asset import DataType
from geomill.domain.engine.job import JobPurpose
from geomill.sdk.orders import AssetOrder
from geomill.sdk.result import HandlerError
from geomill.sql import queries
from geomill.store import styles
from geomill.store.pool import Connection, Pool

SCHEMA = "geo"


@dataclass(frozen=True)
class Orders:
    pool: Pool

    @asynccontextmanager
    async def holding(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AsyncIterator[AssetOrder]:
        async with self.pool.connection() as conn, conn.transaction():
            yield await hold(conn, asset_id, job_id, purpose)

    async def current(self, asset_id: str, job_id: str, purpose: JobPurpose) -> AssetOrder:
        async with self.holding(asset_id, job_id, purpose) as order:
            return order

    async def count_files(self, order: AssetOrder) -> int:
        async with self.pool.connection() as conn:
            parameters = {"asset_id": order.asset_id, "revision": order.revision}
            row = await (await conn.execute(queries("orders").count_files, parameters)).fetchone()
        return int(row["count"]) if row else 0

    async def files(self, order: AssetOrder, first: int = 0, count: int | None = None) -> list[dict[str, Any]]:
        async with self.pool.connection() as conn:
            return await files(conn, order, first, count)

    async def containers(self, order: AssetOrder) -> list[str]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(queries("orders").containers, {"asset_id": order.asset_id})
            return [row["container"] for row in await cursor.fetchall()]

    async def drop_tables(self, asset_id: str, job_id: str) -> list[str]:
        async with self.pool.connection() as conn, conn.transaction():
            await hold(conn, asset_id, job_id, JobPurpose.DELETE)
            parameters = {"asset_id": asset_id, "job_id": job_id}
            row = await (await conn.execute(queries("orders").drop_tables, parameters)).fetchone()
            return list(row["dropped"]) if row else []


async def hold(conn: Connection, asset_id: str, job_id: str, purpose: JobPurpose) -> AssetOrder:
    """The order that the job carries out. Until the transaction ends nobody decides anything else about the asset."""
    parameters = {"asset_id": asset_id, "job_id": job_id, "purpose": purpose.value}
    row = await (await conn.execute(queries("orders").hold, parameters)).fetchone()
    if row is None:
        raise HandlerError(
            f"the job {job_id} may not {purpose.value} the asset {asset_id}: another decision was made since",
            code="order_superseded",
            retryable=False,
        )
    own_styles = await styles.book(conn, asset_id) if purpose is JobPurpose.EXPORT else None
    return AssetOrder(**{**row, "data_type": DataType(row["data_type"]), "own_styles": own_styles})


async def files(conn: Connection, order: AssetOrder, first: int = 0, count: int | None = None) -> list[dict[str, Any]]:
    """A part of the inventory. Raises `AssetState` for a file that is not the asset's."""
    parameters = {"asset_id": order.asset_id, "revision": order.revision, "first": first, "count": count}
    rows = await (await conn.execute(queries("orders").files, parameters)).fetchall()
    for row in rows:
        inventory.require_own(row["file"], order.asset_id, order.blob_stem)
    return [row["file"] for row in rows]


async def drop_tables(conn: Connection, order: AssetOrder, but: Collection[str] = ()) -> list[str]:
    """Drop every table of the asset's revisions, up to that of the order, except for some. Their names."""
    parameters = {"stem": order.table_stem, "revision": order.revision}
    rows = await (await conn.execute(queries("orders").tables, parameters)).fetchall()
    names = [row["name"] for row in rows if row["name"] not in but]
    for name in names:
        await conn.execute(SQL(queries("catalogue").drop_table).format(table=Identifier(SCHEMA, name)))
    return names
