"""Tables as a PMTiles file: a pyramid of vector tiles, for maps without a server.

PostGIS makes the tiles, and the package of the format's authors puts them into a file. Below a tile without features
nobody looks, so empty places cost nothing. Tiles are made in the order of the file.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer
from psycopg.sql import SQL, Composed, Identifier, Literal

from geomill.datasets.refusals import refused
from geomill.sql import queries
from geomill.vector.columns import GEOMETRY, ID
from geomill.vector.database import Connection
from geomill.vector.facts import LayerColumn
from geomill.vector.tables import SCHEMA

ENOUGH = 200
"""Features of a tile: beyond, there is another zoom."""
DEEPEST = 14
MOST_FEATURES = 50_000
"""Of a tile. The server's own tiles have as many."""
MOST_TILES = 300_000
MARGIN = 64 / 4096
"""Of a tile's side, beyond its edges: lines are drawn across them."""
NORTHERNMOST = 85.0511287798066
_PLAIN = ("boolean", "smallint", "integer", "bigint", "real", "double precision", "text")
_NUMBERS = _PLAIN[1:-1]

Tell = Callable[[int, int], None]
"""Called with the zoom and the tiles so far; it may raise."""


class TilePlace(NamedTuple):
    zoom: int
    x: int
    y: int

    @property
    def children(self) -> Iterator[TilePlace]:
        for x in (2 * self.x, 2 * self.x + 1):
            for y in (2 * self.y, 2 * self.y + 1):
                yield TilePlace(self.zoom + 1, x, y)


@dataclass(frozen=True)
class PyramidExtent:
    """In degrees."""

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, bbox: Sequence[float]) -> PyramidExtent:
        """One that crosses the antimeridian goes all the way round."""
        west, south, east, north = bbox
        return cls(west, south, east, north) if west <= east else cls(-180.0, south, 180.0, north)

    @property
    def beyond_the_map(self) -> bool:
        return self.south < -NORTHERNMOST or self.north > NORTHERNMOST

    def deepest_zoom(self, rows: int) -> int:
        """At which a tile has enough features, if they are spread evenly."""
        wide = max((self.east - self.west) / 360, 0.0)
        high = max(_from_north(self.south) - _from_north(self.north), 0.0)
        for zoom in range(DEEPEST):
            if rows <= ENOUGH * max(wide * 2**zoom, 1) * max(high * 2**zoom, 1):
                return zoom
        return DEEPEST

    def within(self, place: TilePlace) -> PyramidExtent | None:
        """What it has in common with a tile and its margin."""
        step = 2.0**-place.zoom
        west, east = (360 * step * (place.x + edge) - 180 for edge in (-MARGIN, 1 + MARGIN))
        north, south = (_latitude(step * (place.y + edge)) for edge in (-MARGIN, 1 + MARGIN))
        found = PyramidExtent(
            max(self.west, west), max(self.south, south), min(self.east, east), min(self.north, north)
        )
        return found if found.west <= found.east and found.south <= found.north else None


@dataclass(frozen=True)
class PyramidLayer:
    table: str
    columns: Sequence[LayerColumn]
    srid: int


def write(
    conn: Connection, layers: Sequence[PyramidLayer], extent: PyramidExtent, deepest: int, path: Path, tell: Tell
) -> int:
    """The number of tiles."""
    statements = [_statement(layer, extent) for layer in layers]
    count, first = 0, deepest
    with path.open("wb") as file:
        writer: Any = Writer(file)  # type: ignore[no-untyped-call]  # it has no types
        for place, tile in _tiles(conn, statements, extent, deepest):
            writer.write_tile(zxy_to_tileid(*place), gzip.compress(tile, 6, mtime=0))
            count, first = count + 1, min(first, place.zoom)
            tell(place.zoom, count)
            if count > MOST_TILES:
                raise refused(
                    "too_many_tiles",
                    f"down to zoom {deepest} there are more than {MOST_TILES:,} tiles: give a smaller pmtiles_max_zoom",
                )
        if not count:
            raise refused(
                "no_tiles", f"nothing of it can be seen down to zoom {deepest}: give a larger pmtiles_max_zoom"
            )
        writer.finalize(_header(extent), _about(layers, first, deepest))
    return count


def _tiles(
    conn: Connection, statements: Sequence[Composed], extent: PyramidExtent, deepest: int
) -> Iterator[tuple[TilePlace, bytes]]:
    """Zoom by zoom, along the curve by which the file is ordered."""
    places: Iterable[TilePlace] = [TilePlace(0, 0, 0)]
    for _ in range(deepest + 1):
        inhabited: list[TilePlace] = []
        for place in sorted(places, key=lambda place: zxy_to_tileid(*place)):
            common = extent.within(place)
            if common is None:
                continue
            box = {"west": common.west, "south": common.south, "east": common.east, "north": common.north}
            found = [conn.execute(one, {**place._asdict(), **box}).fetchone() for one in statements]
            if any(row and row["inhabited"] for row in found):
                inhabited.append(place)
            if tile := b"".join(row["tile"] for row in found if row and row["tile"]):
                yield place, tile
        places = [child for place in inhabited for child in place.children]


def _statement(layer: PyramidLayer, extent: PyramidExtent) -> Composed:
    """With a bytestring of one layer each: joined, they are a tile of several."""
    shape = queries("vectors").map_shape_clipped if extent.beyond_the_map else queries("vectors").map_shape
    named = {"geometry": Identifier(GEOMETRY), "srid": Literal(layer.srid)}
    return SQL(queries("vectors").tile).format(
        table=Identifier(SCHEMA, layer.table),
        layer=Literal(layer.table),
        id=Identifier(ID),
        id_name=Literal(ID),
        columns=SQL("").join(map(_selected, layer.columns)),
        shape=SQL(shape).format(**named),
        most=Literal(MOST_FEATURES),
        **named,
    )


def _selected(column: LayerColumn) -> Composed:
    """Tiles know numbers, texts and truth values."""
    kind = SQL("" if column.type in _PLAIN else "::text")
    return SQL(", t.{0}{1} AS {0}").format(Identifier(column.name), kind)


def _header(extent: PyramidExtent) -> dict[str, Any]:
    south, north = max(extent.south, -NORTHERNMOST), min(extent.north, NORTHERNMOST)
    edges = {"min_lon": extent.west, "min_lat": south, "max_lon": extent.east, "max_lat": north}
    middle = {"center_lon": (extent.west + extent.east) / 2, "center_lat": (south + north) / 2}
    return {
        "tile_type": TileType.MVT,
        "tile_compression": Compression.GZIP,
        **{f"{name}_e7": round(value * 1e7) for name, value in {**edges, **middle}.items()},
        "center_zoom": 0,
    }


def _about(layers: Sequence[PyramidLayer], first: int, deepest: int) -> dict[str, Any]:
    return {
        "name": layers[0].table,
        "type": "overlay",
        "vector_layers": [
            {
                "id": layer.table,
                "minzoom": first,
                "maxzoom": deepest,
                "fields": {column.name: _kind(column.type) for column in layer.columns},
            }
            for layer in layers
        ],
    }


def _kind(type_name: str) -> str:
    return "Boolean" if type_name == "boolean" else "Number" if type_name in _NUMBERS else "String"


def _from_north(latitude: float) -> float:
    """As a part of the map's height."""
    angle = math.radians(min(max(latitude, -NORTHERNMOST), NORTHERNMOST))
    return (1 - math.asinh(math.tan(angle)) / math.pi) / 2


def _latitude(from_north: float) -> float:
    return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * from_north))))
