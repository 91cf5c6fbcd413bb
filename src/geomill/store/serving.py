"""What is served and to whom, and what its tables look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomill.domain.access.visibility import Sight
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.served import Scene, Served
from geomill.domain.objectname import Zone
from geomill.sql import queries
from geomill.store.pool import Connection

Bounds = Sequence[float]
"""West, south, east, north."""


@dataclass(frozen=True, slots=True)
class Page:
    assets: list[Served]
    matched: int
    layers: list[int]
    """Of each, which of its tables is meant."""


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """A table of features in the schema `geo`."""

    name: str
    key: str | None
    columns: list[dict[str, Any]]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Faces:
    """What an asset shows: the newest revision to those who may see the asset itself, the public one to everybody."""

    newest: Served
    public: Served | None

    def shown_to(self, sight: Sight) -> Served | None:
        return sight.face(self.newest.platform_id, self.newest.asset_id, self.newest, self.public)


async def find(conn: Connection, zone: Zone, asset_id: str) -> Faces | None:
    """None for what is not there or was withdrawn."""
    row = await (await conn.execute(_query(zone, "find"), {"asset_id": asset_id})).fetchone()
    if row is None:
        return None
    newest = Served.from_row(row)
    if newest.public_revision is None or newest.public:
        return Faces(newest, newest if newest.public else None)
    kept = await (await conn.execute(queries("serving").internal_public, {"asset_id": asset_id})).fetchone()
    return Faces(newest, Served.from_row(kept) if kept else None)


async def scene(conn: Connection, zone: Zone, served: Served, name: str) -> Served | None:
    """One of a series of rasters, seen by whoever sees the series."""
    parameters = {"asset_id": served.asset_id, "revision": served.revision, "name": name}
    row = await (await conn.execute(_query(zone, "scene"), parameters)).fetchone()
    if row is None or row["scene"] is None:
        return None
    return served.one(name, Scene.model_validate(row["scene"]))


async def scenes(conn: Connection, zone: Zone, served: Served) -> dict[str, Scene]:
    """All of a series, by name."""
    parameters = {"asset_id": served.asset_id, "revision": served.revision}
    row = await (await conn.execute(_query(zone, "scenes"), parameters)).fetchone()
    found: dict[str, Any] = (row and row["scenes"]) or {}
    return {name: Scene.model_validate(one) for name, one in found.items()}


async def job_result(conn: Connection, job_id: str) -> dict[str, Any] | None:
    """Of a stage job by its id, or of any job; None unless it has completed."""
    row = await (await conn.execute(queries("serving").job_result, {"job_id": job_id})).fetchone()
    return row["result_data"] if row else None


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
    matched = rows[0]["matched"] if rows else 0
    return Page([Served.from_row(row) for row in rows], matched, [row["layer"] for row in rows])


async def tables(conn: Connection, names: Sequence[str]) -> dict[str, FeatureTable]:
    """Those that are there, by name."""
    rows = await (await conn.execute(queries("serving").tables, {"names": list(names)})).fetchall()
    return {
        row["table_name"]: FeatureTable(row["table_name"], row["key"], row["columns"], row["description"])
        for row in rows
    }


def _query(zone: Zone, name: str) -> Any:
    return getattr(queries("serving"), f"{'external' if zone is Zone.EXTERNAL else 'internal'}_{name}")
