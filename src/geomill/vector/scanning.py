"""Counts the geometry types of a layer: as it declares, or by reading each geometry if it declares none."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import shapely

from geomill.datasets.refusals import refused
from geomill.vector.facts import Chunk, Family
from geomill.vector.layers import Layer

BATCH = 50_000
KINDS = {
    "Point": Family.POINT,
    "MultiPoint": Family.POINT,
    "LineString": Family.LINE,
    "MultiLineString": Family.LINE,
    "CompoundCurve": Family.LINE,
    "MultiCurve": Family.LINE,
    "CircularString": Family.LINE,
    "Polygon": Family.POLYGON,
    "MultiPolygon": Family.POLYGON,
    "CurvePolygon": Family.POLYGON,
    "MultiSurface": Family.POLYGON,
    "PolyhedralSurface": Family.POLYGON,
    "TIN": Family.POLYGON,
}
_NAMES = {1: "Point", 2: "LineString", 3: "Polygon", 4: "MultiPoint", 5: "MultiLineString", 6: "MultiPolygon"}
_COLLECTION = 7
_DIMENSIONS = re.compile(r"^(2\.5D|3D|Measured|3D Measured) | (Z|M|ZM)$")


def kinds_of(layer: Layer, name: str, chunk: Chunk | None = None) -> Counter[str]:
    """Return the number of geometries by type name, in the chunk or in the whole layer. A layer that declares a type
    counts with all its rows."""
    declared = _DIMENSIONS.sub("", layer.geometry_type)
    if declared in KINDS:
        return Counter({declared: layer.rows})
    kinds: Counter[str] = Counter()
    if chunk is None:
        start, stop = layer.bounds_of_ids()
        chunk = Chunk(number=0, start=start, stop=stop)
    for batch in layer.batches(chunk, BATCH, []):
        kinds.update(_of_batch(batch.geometry))
    if not kinds:
        raise refused("no_geometry", f"none of the {layer.rows:,} rows of '{name}' has a geometry")
    return kinds


def _of_batch(wkb: pa.Array) -> Counter[str]:
    wkb = wkb.drop_null()
    types = np.array([_type(value) for value in wkb.to_pylist()], dtype=np.int64)
    numbers, counts = np.unique(types, return_counts=True)
    kinds = Counter(
        {
            _NAMES[number]: int(count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number in _NAMES
        }
    )
    for index in np.flatnonzero(types == _COLLECTION):
        parts = shapely.get_parts(shapely.from_wkb(wkb[int(index)].as_py(), on_invalid="ignore"))
        within = Counter(part.geom_type for part in parts if part.geom_type in KINDS)
        if within["Point"] > 1:  # they become one multi-point when the collection is unpacked
            within["MultiPoint"] += within.pop("Point")
        kinds += within
    return +kinds


def _type(wkb: bytes) -> int:
    number = int.from_bytes(wkb[1:5], "little" if wkb[:1] == b"\x01" else "big")
    return (number & 0xFFFF) % 1000
