"""Assets as TiPG collections.

Each asset is a collection under its own id, whichever table its revision has. If a layer was split by geometry type,
the other tables are collections too: `{asset_id}.lines`. A request looks up what it needs, so a new table appears at
once and nothing becomes stale.
"""

from __future__ import annotations

from typing import Annotated, Any

import asyncpg
from fastapi import Depends, Path, Query, Request
from tipg.collections import Collection, CollectionList, Column, PgCollection

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.metadata import DatasetMetadata
from geomill.domain.assets.served import Served
from geomill.errors import InputError, NotFoundError
from geomill.serve import caching
from geomill.serve.access import TheSight
from geomill.serve.directory import Directory
from geomill.serve.vector import limits
from geomill.serve.vector.crs import Axes, Systems, axes, box_in_degrees
from geomill.store.quoting import identifier
from geomill.store.serving import FeatureTable

SCHEMA = "geo"
MOST_AT_ONCE = 1000
FARTHEST = 1_000_000_000
"""The maximum offset of a page. PostgreSQL fails on larger numbers."""
WORLD = [-180.0, -90.0, 180.0, 90.0]
GEOMETRIES = ("geometry", "geography")
TIMES = ("timestamp", "timestamptz", "date")
MOST_IN_A_TILE = 50_000
FEATURES = ("items", "item")
"""Routes whose answers contain coordinates."""


class AssetLayer(PgCollection):
    """A layer of an asset. If a tile has too many features, it shows a sample from the whole tile instead of those
    loaded first, so that maps have no holes."""

    scattered: bool = False
    metadata: DatasetMetadata = DatasetMetadata()
    axes: Axes | None = None
    """Axes of the coordinates in the answer; None means degrees."""

    @property
    def systems(self) -> Systems:
        column = self.geometry_column
        heights = bool(column and (column.geometry_type or "").upper().rstrip("M").endswith("Z"))
        return Systems(column.srid if column else None, heights, obeyed="crs" not in self.columns())

    def _geom_expr(self, geometry_column: Any, bbox_only: bool | None, simplify: float | None) -> str | None:
        if self.axes is None or geometry_column is None:
            expression: str | None = super()._geom_expr(geometry_column, bbox_only, simplify)
            return expression
        shape = f"CAST({identifier(geometry_column.name)} AS geometry)"
        if geometry_column.srid != self.axes.srid:
            shape = f"ST_Transform({shape}, {self.axes.srid})"
        if bbox_only:
            shape = f"ST_Envelope({shape})"
        elif simplify:
            shape = f"ST_SnapToGrid(ST_SimplifyPreserveTopology({shape}, {float(simplify)}), {float(simplify)})"
        shape = f"ST_FlipCoordinates({shape})" if self.axes.swapped else shape
        return f"ST_SetSRID({shape}, 0)"  # otherwise PostGIS repeats the CRS in each geometry

    def _select_property_columns(self, properties: list[str] | None) -> list[str]:
        """Select binary values as base64, which JSON and CSV can hold."""
        binary = {column.name for column in self.table_columns if column.type == "bytea"}
        names = [(name, identifier(name)) for name in self.columns(properties)]
        return [
            f"translate(encode({column}, 'base64'), chr(10), '') AS {column}" if name in binary else column
            for name, column in names
        ]

    def cql_where(self, *arguments: Any, **named: Any) -> Any:
        try:
            where = self._cql_where(*arguments, **named)
            if where is not None:
                where.to_sql()
        except Exception as error:
            if type(error) is not Exception:
                raise
            # cql2 raises bare exceptions, here about ids and values that it cannot represent
            raise InputError(f"a value of the request cannot be compared: {str(error)[:200]}") from None
        return where

    def _cql_where(self, *, datetime: list[str] | None = None, dt: str | None = None, **named: Any) -> Any:
        """Include the end of an interval, as OGC API Features has it. TiPG leaves out the end of a closed one."""
        if datetime is None or len(datetime) != 2 or {"..", ""} & set(datetime):
            return super().cql_where(datetime=datetime, dt=dt, **named)
        super().cql_where(datetime=datetime, dt=dt)  # checks the interval
        begun: Any = super().cql_where(datetime=[datetime[0], ".."], dt=dt, **named)
        return begun + super().cql_where(datetime=["..", datetime[1]], dt=dt)

    async def get_tile(self, conn: asyncpg.Connection, *, sortby: str | None = None, **options: Any) -> Any:
        shown = self if sortby or self.id_column is None else self.model_copy(update={"scattered": True})
        return await super(AssetLayer, shown).get_tile(conn, sortby=sortby, **options)

    def _sort_expressions(self, sortby: str | None) -> list[tuple[str, str]]:
        if not self.scattered or self.id_column is None:
            expressions: list[tuple[str, str]] = super()._sort_expressions(sortby)
            return expressions
        key = self.id_column.name
        return [(key, f"hashtextextended({identifier(key)}::text, 0)")]


async def collection(
    request: Request,
    sight: TheSight,
    collection_id: Annotated[str, Path(alias="collectionId", max_length=128)],
    crs: Annotated[
        str | None, Query(description="Reference system of the features' coordinates; degrees by default.")
    ] = None,
) -> AssetLayer:
    limits.check(request)
    directory: Directory = request.app.state.directory
    asset_id, _, part = collection_id.partition(".")
    served = await directory.asset(asset_id, sight, DataType.VECTOR)
    table = (await directory.tables([served])).get((served.asset_id, part))
    if table is None:
        raise NotFoundError(f"the asset '{served.asset_id}' has no served table for '{collection_id}'")
    caching.note(request, served)
    layer = as_collection(served, part, table)
    if request.scope["route"].name in FEATURES:
        uri = layer.systems.chosen(crs)
        layer.axes = axes(uri)
        caching.tell(request, {"Content-Crs": f"<{uri}>"})
    return layer


TheCollection = Annotated[AssetLayer, Depends(collection)]


async def collections(
    request: Request,
    sight: TheSight,
    bbox: Annotated[list[float] | None, Depends(box_in_degrees)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 100,
    offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
) -> CollectionList:
    directory: Directory = request.app.state.directory
    if bbox is not None and len(bbox) == 6:
        bbox = [bbox[0], bbox[1], bbox[3], bbox[4]]
    page = await directory.page(sight, DataType.VECTOR, bbox=bbox, limit=limit, offset=offset)
    tables = await directory.tables(page.assets)
    parts = [(asset, _part(asset, layer)) for asset, layer in zip(page.assets, page.layers, strict=True)]
    layers: list[Collection] = [
        as_collection(asset, part, tables[asset.asset_id, part])
        for asset, part in parts
        if (asset.asset_id, part) in tables
    ]
    following = offset + len(page.assets)
    return CollectionList(
        collections=layers,
        matched=page.matched,
        next=following if following < page.matched else None,
        prev=max(offset - limit, 0) if offset else None,
    )


def _part(served: Served, layer: int) -> str:
    return [*served.layers, *("" for _ in range(layer))][layer]


def as_collection(served: Served, part: str, table: FeatureTable) -> AssetLayer:
    columns = [_column(column, served.bbox) for column in table.columns]
    geometry = next((column for column in columns if column.type in GEOMETRIES), None)
    time = next((column for column in columns if column.type in TIMES), None)
    return AssetLayer(
        type="Table",
        id=f"{served.asset_id}.{part}" if part else served.asset_id,
        title=f"{served.title}, {part}" if part else served.title,
        description=served.metadata.description or table.description,
        metadata=served.metadata,
        table=table.name,
        schema=SCHEMA,
        table_columns=columns,
        properties=columns,
        id_column=next((column for column in columns if column.name == table.key), None),
        geometry_column=geometry,
        datetime_column=time,
    )


def _column(column: dict[str, Any], bbox: list[float] | None) -> Column:
    return Column.model_validate({**column, "bounds": bbox or WORLD} if column["type"] in GEOMETRIES else column)
