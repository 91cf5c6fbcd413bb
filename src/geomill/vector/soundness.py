"""Geometries that are plainly right, recognised by their bytes, many at a time.

Most geometries of most layers need no repair. To find that out by GEOS costs several times what reading and copying
them costs. So those of a simple shape are looked at as arrays of coordinates: points; lines that go somewhere; polygons
of one ring that goes around the mean of its corners once, leftwards with every step. Such a ring encloses something,
does not meet itself, and runs counter-clockwise. What is not proven here, by a margin wider than the rounding of
numbers, need not be wrong: it is left to GEOS.
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
"""WKB's; of a multi-geometry, three more."""
_HEADS = {Family.POINT: 5, Family.LINE: 9, Family.POLYGON: 13}
"""Bytes before the coordinates: order, type, and what is counted."""
_FEWEST = {Family.POINT: 1, Family.LINE: 2, Family.POLYGON: 4}
_MOST = 1_000
"""Corners. Larger ones are few, and need memory."""
_CORNERS_AT_ONCE = 16_000
"""Larger arrays would be got from the system and given back each time, which takes longer than to fill them."""
_MULTI_HEAD = 9
_PAIR = 16
_ROUNDING = 1e-14
"""More than the relative error of a difference of two products of differences."""
_TINY = 1e-290
"""Below it numbers have fewer digits."""


@dataclass(frozen=True, slots=True)
class Sound:
    """Which rows are right, and where they lie."""

    rows: Numbers
    bounds: Floats


def sound(wkb: pa.Array, family: Family, *, multi: bool, geographic: bool) -> Sound:
    """Those of a family, in two dimensions; multi-geometries too, if they may be; on Earth, if that is the question."""
    rows, starts, counts = _candidates(wkb, family, multi=multi)
    numbers = _view(wkb, "<f8")
    right = np.zeros(len(rows), dtype=bool)
    bounds = np.empty((len(rows), 4))
    for count, members in _by_count(counts):
        # A row for each corner, not for each geometry, so that numpy works along long rows.
        places = starts[members] + np.arange(count)[:, None] * _PAIR
        x, y = numbers[places], numbers[places + 8]
        with np.errstate(all="ignore"):  # what is no number is found all the same
            bounds[members] = found = np.column_stack([x.min(axis=0), y.min(axis=0), x.max(axis=0), y.max(axis=0)])
            right[members] = _inside(found, geographic) & _shape(x, y, found, family)
    return Sound(rows[right], bounds[right])


def _by_count(counts: Numbers) -> Iterator[tuple[int, Numbers]]:
    """A number of corners, and some that have so many."""
    order = np.argsort(counts, kind="stable")
    found, begins = np.unique(counts[order], return_index=True)
    for count, members in zip(found.tolist(), np.split(order, begins)[1:], strict=True):
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
    """Rows whose bytes are those of one simple geometry of the family, alone or as the only part of a multi-geometry;
    where its coordinates begin, and how many there are."""
    begins, sizes = _places(wkb)
    least = _HEADS[family] + _FEWEST[family] * _PAIR
    rows = np.flatnonzero(sizes >= least)
    begins, sizes = begins[rows], sizes[rows]
    order, number = _view(wkb, "u1"), _view(wkb, "<u4")
    kinds = number[begins + 1]
    several = multi & (kinds == TYPES[family] + 3) & (sizes >= least + _MULTI_HEAD) & (number[begins + 5] == 1)
    inner = begins + several * _MULTI_HEAD
    fits = (order[begins] == 1) & (order[inner] == 1) & (number[inner + 1] == TYPES[family])
    if family is Family.POLYGON:
        fits &= number[inner + 5] == 1
    starts = inner + _HEADS[family]
    counts = np.ones_like(starts) if family is Family.POINT else number[starts - 4].astype(np.int64)
    fits &= (counts >= _FEWEST[family]) & (counts <= _MOST) & (starts + counts * _PAIR == begins + sizes)
    return rows[fits], starts[fits], counts[fits]


def types(wkb: pa.Array) -> Numbers:
    """The type of each geometry, as its bytes say, lowest first; 0 of what is missing or too short to say."""
    begins, sizes = _places(wkb)
    found = np.zeros(len(wkb), dtype=np.int64)
    there = np.flatnonzero(sizes >= _HEADS[Family.POINT])
    found[there] = _view(wkb, "<u4")[begins[there] + 1]
    return found


def _places(wkb: pa.Array) -> tuple[Numbers, Numbers]:
    """Of each value, where it begins, and its size; 0 of what is missing."""
    offsets = np.frombuffer(wkb.buffers()[1], np.int32, len(wkb) + 1, wkb.offset * 4).astype(np.int64)
    sizes = np.diff(offsets)
    if wkb.null_count:
        sizes[pc.is_null(wkb).to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], sizes


def _view(wkb: pa.Array, kind: str) -> NDArray[Any]:
    """The bytes of all values as numbers, one beginning at each byte."""
    data, size = wkb.buffers()[2], np.dtype(kind).itemsize
    length = 0 if data is None else max(data.size - size + 1, 0)
    return np.ndarray((length,), kind, data if length else b"", strides=(1,))


def _round(x: Floats, y: Floats) -> Flags:
    """Whether each ring goes once around the mean of its corners, counter-clockwise with every step."""
    dx, dy = x - x[:-1].mean(axis=0), y - y[:-1].mean(axis=0)
    one, other = dx[:-1] * dy[1:], dy[:-1] * dx[1:]
    leftwards = one - other > _ROUNDING * (np.abs(one) + np.abs(other)) + _TINY
    below = dy < 0
    once = (below[:-1] & ~below[1:]).sum(axis=0) == 1
    good: Flags = (x[0] == x[-1]) & (y[0] == y[-1]) & once & leftwards.all(axis=0)
    return good
