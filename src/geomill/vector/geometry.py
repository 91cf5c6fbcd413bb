"""Repairs of geometries, many at a time, in a fixed order. Each is counted under its name in `REPAIRS`.

1. What cannot be read, is empty, or has coordinates that are no numbers becomes NULL.
2. Heights and measures are dropped, unless heights are wanted.
3. What is invalid is made valid; what collapses becomes NULL.
4. Collections are unpacked: into what they hold, if that is of one family; else by the rule for mixed layers.
5. Coordinates are transformed to the CRS of the table; those that cannot be, or are none on Earth, become NULL.
6. In degrees: what crosses the 180th meridian is made whole and cut there.
7. Outer rings run counter-clockwise, inner ones clockwise.
8. Lines and polygons become multi-geometries, so that a column has one type.

Winding comes late because some projections mirror it, and the meridian after the transformation because only degrees
have one.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from geomill.raster.problems import refused
from geomill.vector import antimeridian
from geomill.vector.facts import Family, Mixed, Rules
from geomill.vector.projecting import DEGREES, Projection

Geometries = NDArray[Any]
LARGEST = 256 * 1024 * 1024
"""Bytes of one geometry. PostgreSQL could hold four times as much, but nobody could draw it."""
_FAMILIES = (Family.POINT, Family.LINE, Family.POLYGON)
_OF_TYPE = np.array([-1, 0, 1, 1, 2, 0, 1, 2, 3])
"""The family, by shapely's type id plus one; 3 of a collection."""
_MULTI = {
    Family.POINT: shapely.multipoints,
    Family.LINE: shapely.multilinestrings,
    Family.POLYGON: shapely.multipolygons,
}
_COLLECTION = 3
_WKB_MULTI = {Family.POINT: 4, Family.LINE: 5, Family.POLYGON: 6}
_SINGLE_TYPES = (0, 1, 2, 3)
_POLE = 90.0 + 1e-6


@dataclass
class Part:
    """Geometries of one family, and the rows that they belong to."""

    family: Family
    rows: NDArray[np.int64]
    geometries: Geometries
    wkb: pa.Array | None = None
    """Where nothing had to be repaired: as it was read, and there is no need to write it anew."""


@dataclass
class GeometryRepairs:
    """Of one chunk: `counts` goes on over its batches."""

    rules: Rules
    source_crs: str
    counts: Counter[str] = field(default_factory=Counter)
    plain: bool = False
    """Whether the source gives WKB as the standard has it, and nothing else."""

    def __post_init__(self) -> None:
        self._project = Projection(self.source_crs, self.rules.target_crs)

    def harden(self, wkb: pa.Array, ids: NDArray[np.int64]) -> list[Part]:
        """The geometries, repaired, by family; one part if there is one family, and always the main one."""
        before = self._repairs()
        geometries = self._valid(self._flat(self._finite(self._parsed(wkb, ids))))
        families = _OF_TYPE[shapely.get_type_id(geometries) + 1]
        extras = list(self._unpack(geometries, families))
        self._check_families(families, extras, ids)
        parts = [self._wound(self._projected(part)) for part in self._parts(geometries, families, extras)]
        if self.plain and self._repairs() == before and self._project.same and len(parts) == 1:
            parts[0].wkb = _as_multi(wkb, parts[0], self.rules)
        return [part if part.wkb is not None else self._multi(part) for part in parts]

    def _repairs(self) -> int:
        """All that has been changed so far."""
        return self.counts.total() - self.counts["geometry_null"]

    # 1

    def _parsed(self, wkb: pa.Array, ids: NDArray[np.int64]) -> Geometries:
        raw = wkb.to_numpy(zero_copy_only=False)
        sizes = np.diff(np.frombuffer(wkb.buffers()[1], np.int32, len(wkb) + 1, wkb.offset * 4))
        if len(sizes) and sizes.max() > LARGEST:
            raise refused(
                "geometry_too_large",
                f"the geometry of row {ids[sizes.argmax()]} has {sizes.max():,} bytes; at most {LARGEST:,} are taken: "
                "cut it into parts",
            )
        geometries: Geometries = shapely.from_wkb(raw, on_invalid="ignore")
        missing = shapely.is_missing(geometries)
        if missing.sum() > wkb.null_count:
            missing = self._closed(geometries, raw, missing)
        self._count("geometry_unreadable", missing.sum() - wkb.null_count)
        empty = shapely.is_empty(geometries) & ~missing
        self._count("geometry_empty", empty.sum())
        geometries[empty] = None
        self._count("geometry_null", wkb.null_count)
        return geometries

    def _closed(self, geometries: Geometries, raw: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rings that do not end where they begin can be read after all."""
        mended = shapely.from_wkb(raw[missing], on_invalid="fix")
        self._count("rings_closed", (~shapely.is_missing(mended)).sum())
        geometries[missing] = mended
        still: NDArray[np.bool_] = shapely.is_missing(geometries)
        return still

    def _finite(self, geometries: Geometries) -> Geometries:
        return self._drop_infinite(geometries, "geometry_not_finite")

    def _drop_infinite(self, geometries: Geometries, reason: str) -> Geometries:
        coordinates = shapely.get_coordinates(geometries)
        if np.isfinite(coordinates).all():
            return geometries
        coordinates, owner = shapely.get_coordinates(geometries, return_index=True)
        broken = np.unique(owner[~np.isfinite(coordinates).all(axis=1)])
        self._count(reason, len(broken))
        geometries[broken] = None
        return geometries

    # 2

    def _flat(self, geometries: Geometries) -> Geometries:
        tall = shapely.has_z(geometries)
        if self.rules.keep_z:
            flat = ~tall & ~shapely.is_missing(geometries)
            self._count("height_added", flat.sum())
            return shapely.force_3d(geometries) if flat.any() else geometries
        measured = shapely.has_m(geometries)
        self._count("height_dropped", tall.sum())
        self._count("measure_dropped", (measured & ~tall).sum())
        return shapely.force_2d(geometries) if tall.any() or measured.any() else geometries

    # 3

    def _valid(self, geometries: Geometries) -> Geometries:
        broken = np.flatnonzero(~shapely.is_valid(geometries) & ~shapely.is_missing(geometries))
        if not len(broken):
            return geometries
        mended = shapely.make_valid(geometries[broken], method="structure", keep_collapsed=False)
        collapsed = shapely.is_empty(mended)
        mended[collapsed] = None
        self._count("geometry_made_valid", len(broken) - collapsed.sum())
        self._count("geometry_collapsed", collapsed.sum())
        geometries[broken] = mended
        return geometries

    # 4

    def _unpack(self, geometries: Geometries, families: NDArray[np.int64]) -> Iterator[tuple[int, int, BaseGeometry]]:
        """Changes both in place; what has no room there, because a collection is mixed, is given as row, family and
        geometry."""
        collections = np.flatnonzero(families == _COLLECTION)
        self._count("collection_unpacked", len(collections))
        for row in collections:
            found = _by_family(geometries[row])
            if not found:
                geometries[row], families[row] = None, -1
                continue
            (families[row], geometries[row]), *others = found.items()
            yield from ((int(row), family, geometry) for family, geometry in others)

    def _check_families(
        self, families: NDArray[np.int64], extras: list[tuple[int, int, BaseGeometry]], ids: NDArray[np.int64]
    ) -> None:
        if self.rules.mixed is Mixed.SPLIT:
            return
        main = _FAMILIES.index(self.rules.family)
        wrong = np.flatnonzero((families >= 0) & (families != main))
        if len(wrong) or extras:
            row = int(wrong[0]) if len(wrong) else extras[0][0]
            raise refused(
                "mixed_geometries",
                f"the layer holds {self.rules.family}s, but its row {ids[row]} holds something else as well: "
                "give mixed_geometries=split for a table of each kind",
            )

    def _parts(
        self, geometries: Geometries, families: NDArray[np.int64], extras: list[tuple[int, int, BaseGeometry]]
    ) -> Iterator[Part]:
        main = _FAMILIES.index(self.rules.family)
        families = np.where(families < 0, main, families)
        for number in sorted({*np.unique(families).tolist(), *(family for _, family, _ in extras)}):
            rows = np.flatnonzero(families == number)
            more = [(row, geometry) for row, family, geometry in extras if family == number]
            added = np.empty(len(more), dtype=object)
            added[:] = [geometry for _, geometry in more]
            yield Part(
                _FAMILIES[number],
                np.concatenate([rows, np.array([row for row, _ in more], dtype=np.int64)]),
                np.concatenate([geometries[rows], added]),
            )

    # 5 to 8

    def _projected(self, part: Part) -> Part:
        part.geometries = self._in_place(part.geometries)
        return part

    def _in_place(self, geometries: Geometries) -> Geometries:
        project = self._project
        if not project.same:
            before, there = geometries, ~shapely.is_missing(geometries)
            geometries = shapely.transform(geometries, project, include_z=self.rules.keep_z)
            geometries = self._drop_infinite(geometries, "geometry_outside_crs")
            self._check_lost(there.sum(), (~shapely.is_missing(geometries)).sum())
        if not project.geographic:
            return geometries
        geometries = self._on_earth(geometries)
        if project.same:
            mended, count = antimeridian.wrap(geometries)
        else:
            mended, count = antimeridian.mend(geometries, before, project)
        self._count("antimeridian_mended", count)
        if count:
            mended[shapely.is_empty(mended)] = None
        return mended

    def _on_earth(self, geometries: Geometries) -> Geometries:
        bounds = shapely.bounds(geometries)
        with np.errstate(invalid="ignore"):
            off = (np.abs(bounds[:, [1, 3]]) > _POLE).any(axis=1) | (np.abs(bounds[:, [0, 2]]) > DEGREES).any(axis=1)
        if off.any():
            there = (~shapely.is_missing(geometries)).sum()
            self._check_lost(there, there - off.sum())
            self._count("geometry_not_on_earth", off.sum())
            geometries[off] = None
        return geometries

    def _check_lost(self, before: int, after: int) -> None:
        """A few outliers are mistakes in the data; most of it, a mistake in its CRS."""
        if before and after < before / 2:
            raise refused(
                "wrong_crs",
                f"{before - after:,} of {before:,} geometries are not on Earth if their CRS is {self.source_crs[:60]}, "
                "as the file says: give source_crs with the right one",
            )

    def _multi(self, part: Part) -> Part:
        geometries, types = part.geometries, shapely.get_type_id(part.geometries)
        if part.family is Family.POINT and self.rules.points != "MultiPoint":
            part.geometries = self._single_points(geometries, types)
            return part
        single = np.flatnonzero(np.isin(types, _SINGLE_TYPES))
        if len(single) == len(geometries):
            part.geometries = _wrapped(geometries, part.family)
        elif len(single):
            geometries[single] = _wrapped(geometries[single], part.family)
        return part

    def _single_points(self, geometries: Geometries, types: NDArray[np.int64]) -> Geometries:
        several = np.flatnonzero(types > 0)
        if len(several):
            if (shapely.get_num_geometries(geometries[several]) > 1).any():
                raise refused(
                    "mixed_geometries", "the layer declares points and holds multi-points: declare it as MultiPoint"
                )
            geometries[several] = shapely.get_geometry(geometries[several], 0)
        return geometries

    def _wound(self, part: Part) -> Part:
        if part.family is Family.POLYGON:
            wound: Geometries = shapely.orient_polygons(part.geometries, exterior_cw=False)
            same = shapely.equals_identical(part.geometries, wound) | shapely.is_missing(wound)
            self._count("rings_turned", len(wound) - same.sum())
            part.geometries = wound
        return part

    def _count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] += int(number)


def _as_multi(wkb: pa.Array, part: Part, rules: Rules) -> pa.Array | None:
    """The same bytes, with the head of a multi-geometry before each that needs one; None if some do and some do not."""
    types = np.unique(shapely.get_type_id(part.geometries[~shapely.is_missing(part.geometries)]))
    if len(types) != 1 or rules.keep_z:
        return None
    kind = rules.type_of(part.family)
    if types[0] == shapely.GeometryType[kind.upper()]:
        return wkb
    if not kind.startswith("Multi") or types[0] not in _SINGLE_TYPES:
        return None
    head = struct.pack("<BII", 1, _WKB_MULTI[part.family], 1)
    return pc.binary_join_element_wise(pa.scalar(head, pa.binary()), wkb, pa.scalar(b"", pa.binary()))


def _wrapped(geometries: Geometries, family: Family) -> Geometries:
    """Each as the only part of a multi-geometry."""
    made: Geometries = _MULTI[family](geometries, indices=np.arange(len(geometries)))
    return made


def _by_family(collection: BaseGeometry) -> dict[int, BaseGeometry]:
    parts: dict[int, list[BaseGeometry]] = {}
    for part in _leaves(collection):
        parts.setdefault(int(shapely.get_dimensions(part)), []).append(part)
    return {dimension: _MULTI[_FAMILIES[dimension]](found) for dimension, found in sorted(parts.items(), reverse=True)}


def _leaves(geometry: BaseGeometry) -> Iterator[BaseGeometry]:
    for part in shapely.get_parts(geometry):
        if part.is_empty:
            continue
        if int(shapely.get_type_id(part)) >= 4:
            yield from _leaves(part)
        else:
            yield part
