"""What is served and to whom, and what its tables look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from geomill.domain.asset import DataType
from geomill.domain.objectname import Zone
from geomill.domain.served import Served
from geomill.domain.visibility import Sight
from geomill.sql import queries
from geomill.store.pool import Connection

Bounds = Sequence[float]
"""West, south, east, north."""


@dataclass(frozen=True, slots=True)
class Page:
    assets: list[Served]
    matched: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table of features in the schema `geo`."""

    name: str
    key: str | None
    columns: list[dict[str, Any]]
    description: str | None = None


async def find(conn: Connection, zone: Zone, asset_id: str) -> Served | None:
    """Whatever is there and not deleted. Who may see it is another question."""
    row = await (await conn.execute(_query(zone, "find"), {"asset_id": asset_id})).fetchone()
    return Served.from_row(row) if row else None


async def page(
    conn: Connection,
    zone: Zone,
    sight: Sight,
    *,
    data_type: DataType | None = None,
    bbox: Bounds | None = None,
    limit: int = 100,
    offset: int = 0,
) -> Page:
    """What this caller sees, the newest first."""
    parameters = {
        **sight.model_dump(),
        "data_type": data_type,
        "bbox": list(bbox) if bbox is not None else None,
        "limit": limit,
        "offset": offset,
    }
    rows = await (await conn.execute(_query(zone, "page"), parameters)).fetchall()
    return Page([Served.from_row(row) for row in rows], rows[0]["matched"] if rows else 0)


async def tables(conn: Connection, names: Sequence[str]) -> dict[str, Table]:
    """Those that are there, by name."""
    rows = await (await conn.execute(queries("serving").tables, {"names": list(names)})).fetchall()
    return {row["table_name"]: Table(row["table_name"], row["key"], row["columns"], row["description"]) for row in rows}


async def extent(conn: Connection, table: str, column: str, srid: int) -> list[float] | None:
    """West, south, east, north, in degrees, of all that is in the table. Reads it."""
    query = sql.SQL(
        "SELECT ST_XMin(b) AS w, ST_YMin(b) AS s, ST_XMax(b) AS e, ST_YMax(b) AS n FROM ("
        " SELECT ST_Transform(ST_SetSRID(ST_Extent({column}::geometry), %(srid)s), 4326) AS b FROM {table}) AS found"
    ).format(column=sql.Identifier(column), table=sql.Identifier("geo", table))
    row = await (await conn.execute(query, {"srid": srid})).fetchone()
    return [row["w"], row["s"], row["e"], row["n"]] if row and row["w"] is not None else None


def _query(zone: Zone, name: str) -> Any:
    return getattr(queries("serving"), f"{'external' if zone is Zone.EXTERNAL else 'internal'}_{name}")
