"""Repairs of geometries, many at a time, in a fixed order. Each is counted under its name in `REPAIRS`.

1. What cannot be read, is empty, or has coordinates that are no numbers becomes NULL.
2. Heights and measures are dropped, unless heights are wanted.
3. What is invalid is made valid; what collapses becomes NULL.
4. Collections are unpacked: into what they hold, if that is of one family; else by the rule for mixed layers.
5. Coordinates are transformed to the CRS of the table; those that cannot be, or are none on Earth, become NULL.
6. In degrees: what crosses the 180th meridian is made whole and cut there.
7. Outer rings run counter-clockwise, inner ones clockwise.
8. Lines and polygons become multi-geometries, so that a column has one type.

Before all that, those that need none of it are set aside by a look at their bytes: see `soundness`.

Winding comes late because some projections mirror it, and the meridian after the transformation because only degrees
have one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from geomill.datasets.refusals import refused
from geomill.vector.extent import outline
from geomill.vector.facts import Family, LoadingRules, Mixed
from geomill.vector.families import (
    COLLECTION,
    FAMILIES,
    Extra,
    FamilyPart,
    FamilyRows,
    Geometries,
    Numbers,
    family_numbers,
    from_lines,
    in_one_type,
    parts,
    same_bytes,
    unpack,
)
from geomill.vector.placing import Placing, drop_infinite
from geomill.vector.projecting import Projection
from geomill.vector.soundness import Sound, sound

Floats = NDArray[np.float64]
LARGEST = 64 * 1024 * 1024
"""Bytes of one geometry: four million points. To repair it takes some twelve times as much memory."""
FEWEST = 100


@dataclass
class GeometryRepairs:
    """Of one chunk: `counts` goes on over its batches."""

    rules: LoadingRules
    source_crs: str
    counts: Counter[str] = field(default_factory=Counter)
    plain: bool = False
    """Whether the source gives WKB as the standard has it, and nothing else."""
    fewest: int = FEWEST
    """Of fewer geometries no conclusion is drawn about the CRS."""

    def __post_init__(self) -> None:
        project = Projection(self.source_crs, self.rules.target_crs)
        self._placing = Placing(project, self.rules.keep_z, self._count, self.fewest)

    def harden(self, wkb: pa.Array, ids: Numbers) -> list[FamilyRows]:
        """The geometries, repaired, by family."""
        _check_sizes(wkb, ids)
        found = self._sound(wkb)
        rest = np.delete(np.arange(len(wkb)), found.rows)
        parts = self._repaired(wkb.take(rest), ids[rest], len(found.rows)) if len(rest) else []
        if all(part.untouched for part in parts):
            points = [self._points_of(wkb, found), *(_points(part.geometries) for part in parts)]
            same = same_bytes(wkb, self.rules.family, self.rules)
            return [FamilyRows(self.rules.family, np.arange(len(wkb)), same, np.concatenate(points))]
        return [*self._as_they_are(wkb, found), *(self._ready(part, rest) for part in parts)]

    def _sound(self, wkb: pa.Array) -> Sound:
        """Those that need nothing."""
        project, kind = self._placing.project, self.rules.type_of(self.rules.family)
        if self.rules.keep_z or not project.same:
            return Sound(np.empty(0, np.int64), np.empty((0, 4)))
        return sound(wkb, self.rules.family, multi=kind.startswith("Multi"), geographic=project.geographic)

    def _as_they_are(self, wkb: pa.Array, found: Sound) -> list[FamilyRows]:
        if not len(found.rows):
            return []
        same = same_bytes(wkb.take(found.rows), self.rules.family, self.rules)
        return [FamilyRows(self.rules.family, found.rows, same, self._points_of(wkb, found))]

    def _points_of(self, wkb: pa.Array, found: Sound) -> Floats:
        return outline(found.bounds, lambda: shapely.get_coordinates(_read(wkb.take(found.rows))))

    def _ready(self, part: FamilyPart, batch: Numbers) -> FamilyRows:
        """`batch` are the rows of the batch that were looked at."""
        made = in_one_type(part, self.rules).geometries
        wkb = shapely.to_wkb(made, output_dimension=3 if self.rules.keep_z else 2)
        return FamilyRows(part.family, batch[part.rows], pa.array(wkb, pa.binary()), _points(made))

    def _repaired(self, wkb: pa.Array, ids: Numbers, others: int) -> list[FamilyPart]:
        """By GEOS; `others` need nothing."""
        before = self._repairs()
        geometries = self._valid(self._flat(self._parsed(wkb)))
        families = family_numbers(geometries)
        self._count("collection_unpacked", (families == COLLECTION).sum())
        extras = list(unpack(geometries, families))
        self._check_families(families, extras, ids)
        found = parts(geometries, families, extras, self.rules.family)
        made = [self._wound(self._placed(one, others)) for one in found]
        same = self.plain and self._placing.project.same and not self.rules.keep_z and len(made) == 1
        if same and self._repairs() == before:
            made[0].untouched = made[0].family is self.rules.family and self._fits(made[0])
        return made

    def _fits(self, part: FamilyPart) -> bool:
        """Whether it may go into the table, with the head of a multi-geometry at most."""
        points = self.rules.type_of(part.family) == "Point"
        return not points or bool((shapely.get_type_id(part.geometries) <= 0).all())

    def _repairs(self) -> int:
        """All that has been changed so far."""
        return self.counts.total() - self.counts["geometry_null"]

    # 1

    def _parsed(self, wkb: pa.Array) -> Geometries:
        geometries = _read(wkb)
        missing = shapely.is_missing(geometries)
        if missing.sum() > wkb.null_count:
            missing = self._closed(geometries, wkb, missing)
        self._count("geometry_unreadable", missing.sum() - wkb.null_count)
        empty = shapely.is_empty(geometries) & ~missing
        self._count("geometry_empty", empty.sum())
        geometries[empty] = None
        self._count("geometry_null", wkb.null_count)
        return drop_infinite(geometries, self._count, "geometry_not_finite")

    def _closed(self, geometries: Geometries, wkb: pa.Array, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rings that do not end where they begin can be read after all."""
        mended = _read(wkb.filter(pa.array(missing)), on_invalid="fix")
        self._count("rings_closed", (~shapely.is_missing(mended)).sum())
        geometries[missing] = mended
        still: NDArray[np.bool_] = shapely.is_missing(geometries)
        return still

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
        for index in np.flatnonzero(shapely.is_empty(mended) | ~shapely.is_valid(mended)):
            mended[index] = from_lines(geometries[broken[index]])  # spikes are too much for the better method
        collapsed = shapely.is_empty(mended) | ~shapely.is_valid(mended)
        mended[collapsed] = None
        self._count("geometry_made_valid", len(broken) - collapsed.sum())
        self._count("geometry_collapsed", collapsed.sum())
        geometries[broken] = mended
        return geometries

    # 4

    def _check_families(self, families: Numbers, extras: list[Extra], ids: Numbers) -> None:
        if self.rules.mixed is Mixed.SPLIT:
            return
        main = FAMILIES.index(self.rules.family)
        wrong = np.flatnonzero((families >= 0) & (families != main))
        if len(wrong) or extras:
            row = int(wrong[0]) if len(wrong) else extras[0][0]
            raise refused(
                "mixed_geometries",
                f"the layer holds {self.rules.family}s, but its row {ids[row]} holds something else as well: "
                "give mixed_geometries=split for a table of each kind",
            )

    # 5 to 8

    def _placed(self, part: FamilyPart, others: int) -> FamilyPart:
        placed = self._placing.place(part.geometries, others)
        # What was valid in one CRS need not be so in another.
        part.geometries = placed if self._placing.project.same else self._valid(placed)
        return part

    def _wound(self, part: FamilyPart) -> FamilyPart:
        if part.family is Family.POLYGON:
            wound: Geometries = shapely.orient_polygons(part.geometries, exterior_cw=False)
            same = shapely.equals_identical(part.geometries, wound) | shapely.is_missing(wound)
            self._count("rings_turned", len(wound) - same.sum())
            part.geometries = wound
        return part

    def _count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] += int(number)


def _read(wkb: pa.Array, on_invalid: Literal["ignore", "fix"] = "ignore") -> Geometries:
    found: Geometries = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False), on_invalid=on_invalid)
    return found


def _points(geometries: Geometries) -> Floats:
    return outline(shapely.bounds(geometries), lambda: shapely.get_coordinates(geometries))


def _check_sizes(wkb: pa.Array, ids: Numbers) -> None:
    sizes = np.diff(np.frombuffer(wkb.buffers()[1], np.int32, len(wkb) + 1, wkb.offset * 4))
    if len(sizes) and sizes.max() > LARGEST:
        raise refused(
            "geometry_too_large",
            f"the geometry of row {ids[sizes.argmax()]} has {sizes.max():,} bytes; at most {LARGEST:,} are taken: "
            "cut it into parts",
        )
