"""The assets that are served, who sees them, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

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
    """For each asset, the number of the table that this line is for."""


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """A table of features in the schema `geo`."""

    name: str
    key: str | None
    columns: list[dict[str, Any]]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Faces:
    """The revisions that an asset shows: the newest to callers who may see the asset, the public one to everybody."""

    newest: Served
    public: Served | None

    def shown_to(self, sight: Sight) -> Served | None:
        return sight.face(self.newest.platform_id, self.newest.asset_id, self.newest, self.public)


async def find(conn: Connection, zone: Zone, asset_id: str) -> Faces | None:
    """Return the served revisions of an asset, or None if it does not exist or was withdrawn."""
    statement = _in_zone(zone, queries("serving").internal_find, queries("serving").external_find)
    row = await (await conn.execute(statement, {"asset_id": asset_id})).fetchone()
    if row is None:
        return None
    newest = Served.from_row(row)
    if newest.public_revision is None or newest.public:
        return Faces(newest, newest if newest.public else None)
    public_row = await (await conn.execute(queries("serving").internal_public, {"asset_id": asset_id})).fetchone()
    return Faces(newest, Served.from_row(public_row) if public_row else None)


async def scene(conn: Connection, zone: Zone, served: Served, name: str) -> Served | None:
    """Return a scene of a series of rasters. It has the visibility of its series."""
    parameters = {"asset_id": served.asset_id, "revision": served.revision, "name": name}
    statement = _in_zone(zone, queries("serving").internal_scene, queries("serving").external_scene)
    row = await (await conn.execute(statement, parameters)).fetchone()
    if row is None or row["scene"] is None:
        return None
    return served.one(name, Scene.model_validate(row["scene"]))


async def scenes(conn: Connection, zone: Zone, served: Served) -> dict[str, Scene]:
    """Return all scenes of a series, by name."""
    parameters = {"asset_id": served.asset_id, "revision": served.revision}
    statement = _in_zone(zone, queries("serving").internal_scenes, queries("serving").external_scenes)
    row = await (await conn.execute(statement, parameters)).fetchone()
    documents: dict[str, Any] = (row and row["scenes"]) or {}
    return {name: Scene.model_validate(document) for name, document in documents.items()}


async def job_result(conn: Connection, job_id: str) -> dict[str, Any] | None:
    """Return the result of a stage job or any other job, or None unless it has completed."""
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
    """Return the assets that this caller sees, the newest first."""
    parameters = {
        **sight.model_dump(),
        "data_type": data_type,
        "bbox": list(bbox) if bbox is not None else None,
        "limit": limit,
        "offset": offset,
    }
    statement = _in_zone(zone, queries("serving").internal_page, queries("serving").external_page)
    rows = await (await conn.execute(statement, parameters)).fetchall()
    matched = rows[0]["matched"] if rows else 0
    return Page([Served.from_row(row) for row in rows], matched, [row["layer"] for row in rows])


async def tables(conn: Connection, names: Sequence[str]) -> dict[str, FeatureTable]:
    """Return the tables that exist, by name."""
    rows = await (await conn.execute(queries("serving").tables, {"names": list(names)})).fetchall()
    return {
        row["table_name"]: FeatureTable(row["table_name"], row["key"], row["columns"], row["description"])
        for row in rows
    }


def _in_zone(zone: Zone, internal: LiteralString, external: LiteralString) -> LiteralString:
    """Returns the statement for the database of this zone."""
    return external if zone is Zone.EXTERNAL else internal
