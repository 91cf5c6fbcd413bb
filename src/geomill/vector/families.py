"""Kinds of geometries that fit into one table, and how they are told apart and put together."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from geomill.datasets.refusals import refused
from geomill.vector.facts import Family, LoadingRules
from geomill.vector.soundness import TYPES, types

Geometries = NDArray[Any]
Numbers = NDArray[np.int64]
Extra = tuple[int, int, BaseGeometry]
"""Row, family and geometry of a part of a mixed collection."""
FAMILIES = (Family.POINT, Family.LINE, Family.POLYGON)
COLLECTION = 3
_OF_TYPE = np.array([-1, 0, 1, 1, 2, 0, 1, 2, COLLECTION])
_MULTI = {
    Family.POINT: shapely.multipoints,
    Family.LINE: shapely.multilinestrings,
    Family.POLYGON: shapely.multipolygons,
}
_SINGLE_TYPES = (0, 1, 2, 3)


@dataclass
class FamilyPart:
    """Geometries of one family, and the rows that they belong to."""

    family: Family
    rows: Numbers
    geometries: Geometries
    untouched: bool = False
    """Whether nothing had to be repaired, and what was read need not be written anew."""


@dataclass(frozen=True)
class FamilyRows:
    """Geometries of one family as they go into its table, the rows of the batch that they belong to, and points around
    all of them."""

    family: Family
    rows: Numbers
    wkb: pa.Array
    points: NDArray[np.float64]


def family_numbers(geometries: Geometries) -> Numbers:
    """By their place in `FAMILIES`; -1 of nothing, `COLLECTION` of a collection."""
    found: Numbers = _OF_TYPE[shapely.get_type_id(geometries) + 1]
    return found


def unpack(geometries: Geometries, families: Numbers) -> Iterator[Extra]:
    """Put what collections hold in their place. What has no room there, because it is mixed, is given."""
    for row in np.flatnonzero(families == COLLECTION):
        found = _by_family(geometries[row])
        if not found:
            geometries[row], families[row] = None, -1
            continue
        (families[row], geometries[row]), *others = found.items()
        yield from ((int(row), family, geometry) for family, geometry in others)


def parts(geometries: Geometries, families: Numbers, extras: list[Extra], main: Family) -> Iterator[FamilyPart]:
    """By family; what has no geometry belongs to the main one."""
    families = np.where(families < 0, FAMILIES.index(main), families)
    for number in sorted({*np.unique(families).tolist(), *(family for _, family, _ in extras)}):
        rows = np.flatnonzero(families == number)
        more = [(row, geometry) for row, family, geometry in extras if family == number]
        added = np.empty(len(more), dtype=object)
        added[:] = [geometry for _, geometry in more]
        yield FamilyPart(
            FAMILIES[number],
            np.concatenate([rows, np.array([row for row, _ in more], dtype=np.int64)]),
            np.concatenate([geometries[rows], added]),
        )


def from_lines(geometry: BaseGeometry) -> BaseGeometry:
    """What the lines of a geometry enclose, without what is left over of them; empty if that is nothing."""
    whole = shapely.make_valid(geometry, method="linework")
    found = _by_family(whole).get(int(shapely.get_dimensions(geometry)))
    return shapely.GeometryCollection() if found is None else found


def in_one_type(part: FamilyPart, rules: LoadingRules) -> FamilyPart:
    """Single geometries as multi-geometries; points the other way, unless the layer has multi-points."""
    geometries, types = part.geometries, shapely.get_type_id(part.geometries)
    if part.family is Family.POINT and rules.points != "MultiPoint":
        part.geometries = _single_points(geometries, types)
        return part
    single = np.flatnonzero(np.isin(types, _SINGLE_TYPES))
    if len(single) == len(geometries):
        part.geometries = _wrapped(geometries, part.family)
    elif len(single):
        geometries[single] = _wrapped(geometries[single], part.family)
    return part


def _single_points(geometries: Geometries, types: Numbers) -> Geometries:
    several = np.flatnonzero(types > 0)
    if len(several):
        if (shapely.get_num_geometries(geometries[several]) > 1).any():
            raise refused(
                "mixed_geometries", "the layer declares points and holds multi-points: declare it as MultiPoint"
            )
        geometries[several] = shapely.get_geometry(geometries[several], 0)
    return geometries


def same_bytes(wkb: pa.Array, family: Family, rules: LoadingRules) -> pa.Array:
    """What needs no repair, as it was read, with the head of a multi-geometry before each that needs one."""
    if rules.type_of(family) == "Point":
        return wkb
    single = types(wkb) == TYPES[family]
    head: Any = pa.scalar(struct.pack("<BII", 1, TYPES[family] + 3, 1), pa.binary())
    if not single.all():
        head = pc.if_else(pa.array(single), head, pa.scalar(b"", pa.binary()))
    return pc.binary_join_element_wise(head, wkb, pa.scalar(b"", pa.binary()))


def _wrapped(geometries: Geometries, family: Family) -> Geometries:
    """Each as the only part of a multi-geometry."""
    made: Geometries = _MULTI[family](geometries, indices=np.arange(len(geometries)))
    return made


def _by_family(collection: BaseGeometry) -> dict[int, BaseGeometry]:
    parts: dict[int, list[BaseGeometry]] = {}
    for part in _leaves(collection):
        parts.setdefault(int(shapely.get_dimensions(part)), []).append(part)
    return {dimension: _MULTI[FAMILIES[dimension]](found) for dimension, found in sorted(parts.items(), reverse=True)}


def _leaves(geometry: BaseGeometry) -> Iterator[BaseGeometry]:
    for part in shapely.get_parts(geometry):
        if part.is_empty:
            continue
        if int(shapely.get_type_id(part)) >= 4:
            yield from _leaves(part)
        else:
            yield part
