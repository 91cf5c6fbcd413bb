"""Which kinds of geometries a layer holds: as it declares, or by a look at each where it declares nothing."""

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


def kinds_of(layer: Layer, name: str) -> Counter[str]:
    """By name of the type, how many; of a layer that declares one type, all."""
    declared = _DIMENSIONS.sub("", layer.geometry_type)
    if declared in KINDS:
        return Counter({declared: layer.rows})
    found: Counter[str] = Counter()
    start, stop = layer.bounds_of_ids()
    for batch in layer.batches(Chunk(number=0, start=start, stop=stop), BATCH, []):
        found.update(_of_batch(batch.geometry))
    if not found:
        raise refused("no_geometry", f"none of the {layer.rows:,} rows of '{name}' has a geometry")
    return found


def _of_batch(wkb: pa.Array) -> Counter[str]:
    wkb = wkb.drop_null()
    types = np.array([_type(value) for value in wkb.to_pylist()], dtype=np.int64)
    numbers, counts = np.unique(types, return_counts=True)
    found = Counter(
        {
            _NAMES[number]: int(count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number in _NAMES
        }
    )
    for index in np.flatnonzero(types == _COLLECTION):
        for part in shapely.get_parts(shapely.from_wkb(wkb[int(index)].as_py(), on_invalid="ignore")):
            found[part.geom_type] += part.geom_type in KINDS
    return +found


def _type(wkb: bytes) -> int:
    number = int.from_bytes(wkb[1:5], "little" if wkb[:1] == b"\x01" else "big")
    return (number & 0xFFFF) % 1000
