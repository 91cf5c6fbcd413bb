"""Cheap checks on the WKB bytes that let most geometries skip GEOS.

Most geometries of most layers need no repair, and proving that with GEOS costs several times as much as reading and
copying them. So simple geometries are checked as arrays of coordinates: points; lines with at least two different
points; polygons with one ring that goes around the mean of its corners once, turning left with every step. Such a ring
encloses an area, does not cross itself, and runs counter-clockwise. The checks leave a margin for rounding. A geometry
that does not pass may still be valid; GEOS decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from geomill.vector.facts import Family

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

TYPES = {Family.POINT: 1, Family.LINE: 2, Family.POLYGON: 3}
"""WKB type numbers. That of the multi-geometry is three higher."""
_HEADS = {Family.POINT: 5, Family.LINE: 9, Family.POLYGON: 13}
"""Bytes before the coordinates: byte order, type and counts."""
_FEWEST = {Family.POINT: 1, Family.LINE: 2, Family.POLYGON: 4}
_MOST = 1_000
"""The maximum number of corners. Larger geometries are few and need memory."""
_CORNERS_AT_ONCE = 16_000
"""Larger arrays would be allocated and freed by the system each time, which takes longer than filling them."""
_MULTI_HEAD = 9
_PAIR = 16
_ROUNDING = 1e-14
"""An upper bound of the relative error of a difference of two products of differences."""
_TINY = 1e-290
"""Numbers below this have fewer digits."""


@dataclass(frozen=True, slots=True)
class Sound:
    """The rows of valid geometries and their bounds."""

    rows: Numbers
    bounds: Floats


def sound(wkb: pa.Array, family: Family, *, multi: bool, geographic: bool) -> Sound:
    """Return the two-dimensional geometries of a family that need no repair.

    `multi` includes multi-geometries with one part. `geographic` requires coordinates on Earth.
    """
    rows, starts, counts = _candidates(wkb, family, multi=multi)
    numbers = _view(wkb, "<f8")
    right = np.zeros(len(rows), dtype=bool)
    bounds = np.empty((len(rows), 4))
    for count, members in _by_count(counts):
        # One row for each corner instead of each geometry, so that numpy works along long rows.
        places = starts[members] + np.arange(count)[:, None] * _PAIR
        x, y = numbers[places], numbers[places + 8]
        with np.errstate(all="ignore"):  # NaN fails the checks below
            bounds[members] = boxes = np.column_stack([x.min(axis=0), y.min(axis=0), x.max(axis=0), y.max(axis=0)])
            right[members] = _inside(boxes, geographic) & _shape(x, y, boxes, family)
    return Sound(rows[right], bounds[right])


def _by_count(counts: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield a number of corners and geometries with that number, in groups."""
    order = np.argsort(counts, kind="stable")
    distinct, begins = np.unique(counts[order], return_index=True)
    for count, members in zip(distinct.tolist(), np.split(order, begins)[1:], strict=True):
        step = max(_CORNERS_AT_ONCE // count, 1)
        for start in range(0, len(members), step):
            yield count, members[start : start + step]


def _inside(bounds: Floats, geographic: bool) -> Flags:
    west, south, east, north = bounds.T
    if geographic:
        on_earth: Flags = (west >= -180) & (east <= 180) & (south >= -90) & (north <= 90)
        return on_earth
    return np.asarray(np.isfinite(bounds).all(axis=1))


def _shape(x: Floats, y: Floats, bounds: Floats, family: Family) -> Flags:
    if family is Family.POLYGON:
        return _round(x, y)
    west, south, east, north = bounds.T
    return (west < east) | (south < north) if family is Family.LINE else np.ones(len(west), dtype=bool)


def _candidates(wkb: pa.Array, family: Family, *, multi: bool) -> tuple[Numbers, Numbers, Numbers]:
    """Return the rows with one simple geometry of the family, alone or as the only part of a multi-geometry, and for
    each the offset and the number of its coordinates."""
    begins, sizes = _places(wkb)
    least = _HEADS[family] + _FEWEST[family] * _PAIR
    rows = np.flatnonzero(sizes >= least)
    begins, sizes = begins[rows], sizes[rows]
    order, number = _view(wkb, "u1"), _view(wkb, "<u4")
    kinds = number[begins + 1]
    several = multi & (kinds == TYPES[family] + 3) & (sizes >= least + _MULTI_HEAD) & (number[begins + 5] == 1)
    inner = begins + several * _MULTI_HEAD
    matches = (order[begins] == 1) & (order[inner] == 1) & (number[inner + 1] == TYPES[family])
    if family is Family.POLYGON:
        matches &= number[inner + 5] == 1
    starts = inner + _HEADS[family]
    counts = np.ones_like(starts) if family is Family.POINT else number[starts - 4].astype(np.int64)
    matches &= (counts >= _FEWEST[family]) & (counts <= _MOST) & (starts + counts * _PAIR == begins + sizes)
    return rows[matches], starts[matches], counts[matches]


def types(wkb: pa.Array) -> Numbers:
    """Return the type of each geometry in little-endian WKB; 0 if it is missing or too short."""
    begins, sizes = _places(wkb)
    numbers = np.zeros(len(wkb), dtype=np.int64)
    long_enough = np.flatnonzero(sizes >= _HEADS[Family.POINT])
    numbers[long_enough] = _view(wkb, "<u4")[begins[long_enough] + 1]
    return numbers


def _places(wkb: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the offset and the size of each value. The size of NULL is 0."""
    offsets = np.frombuffer(wkb.buffers()[1], np.int32, len(wkb) + 1, wkb.offset * 4).astype(np.int64)
    sizes = np.diff(offsets)
    if wkb.null_count:
        sizes[pc.is_null(wkb).to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], sizes


def _view(wkb: pa.Array, kind: str) -> NDArray[Any]:
    """View the bytes of all values as numbers, one starting at each byte."""
    data, size = wkb.buffers()[2], np.dtype(kind).itemsize
    length = 0 if data is None else max(data.size - size + 1, 0)
    return np.ndarray((length,), kind, data if length else b"", strides=(1,))


def _round(x: Floats, y: Floats) -> Flags:
    """Return whether each ring goes once around the mean of its corners, counter-clockwise with every step."""
    dx, dy = x - x[:-1].mean(axis=0), y - y[:-1].mean(axis=0)
    forward, backward = dx[:-1] * dy[1:], dy[:-1] * dx[1:]
    leftwards = forward - backward > _ROUNDING * (np.abs(forward) + np.abs(backward)) + _TINY
    below = dy < 0
    once = (below[:-1] & ~below[1:]).sum(axis=0) == 1
    good: Flags = (x[0] == x[-1]) & (y[0] == y[-1]) & once & leftwards.all(axis=0)
    return good
