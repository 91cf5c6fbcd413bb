"""Transforms geometries to the CRS of their table and drops those that are not on Earth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geomill.datasets.refusals import refused
from geomill.vector import antimeridian
from geomill.vector.projecting import DEGREES, Projection

Geometries = NDArray[Any]
Count = Callable[[str, int], None]
_POLE = 90.0 + 1e-6
_SWAPPED = 0.1
"""The part of impossible latitudes from which coordinates count as swapped."""


def drop_infinite(geometries: Geometries, count: Count, reason: str) -> Geometries:
    """Set geometries with NaN or infinite coordinates to NULL."""
    coordinates = shapely.get_coordinates(geometries)
    if np.isfinite(coordinates).all():
        return geometries
    coordinates, owner = shapely.get_coordinates(geometries, return_index=True)
    broken = np.unique(owner[~np.isfinite(coordinates).all(axis=1)])
    count(reason, len(broken))
    geometries[broken] = None
    return geometries


@dataclass
class Placing:
    project: Projection
    keep_z: bool
    count: Count
    fewest: int
    """The minimum number of geometries for a conclusion about the CRS."""

    def place(self, geometries: Geometries, others: int = 0) -> Geometries:
        """Transform the geometries. `others` is the number of geometries that need no transformation."""
        project, before = self.project, geometries
        if not project.same:
            geometries = shapely.transform(before, project, include_z=self.keep_z)
            geometries = drop_infinite(geometries, self.count, "geometry_outside_crs")
            self._check_lost(_present_count(before), _present_count(geometries))
        if not project.geographic:
            return geometries
        geometries = self._on_earth(geometries, others)
        if project.same:
            mended, number = antimeridian.wrap(geometries)
        else:
            mended, number = antimeridian.mend(geometries, before, project)
        self.count("antimeridian_mended", number)
        if number:
            mended[shapely.is_empty(mended)] = None  # geometries without extent that only touched the edge
        return mended

    def _on_earth(self, geometries: Geometries, others: int) -> Geometries:
        bounds = shapely.bounds(geometries)
        with np.errstate(invalid="ignore"):  # missing geometries have NaN bounds
            off = (np.abs(bounds[:, [1, 3]]) > _POLE).any(axis=1) | (np.abs(bounds[:, [0, 2]]) > DEGREES).any(axis=1)
        if off.any():
            there = _present_count(geometries) + others
            self._check_swapped(bounds[off], there)
            self._check_lost(there, there - int(off.sum()))
            self.count("geometry_not_on_earth", off.sum())
            geometries[off] = None
        return geometries

    def _check_swapped(self, bounds: NDArray[np.float64], there: int) -> None:
        """Refuse a layer in which many latitudes are impossible, but would be longitudes."""
        fits = (np.abs(bounds[:, [0, 2]]) <= _POLE).all() and (np.abs(bounds[:, [1, 3]]) <= DEGREES / 2).all()
        if self.project.same and fits and there >= self.fewest and len(bounds) > _SWAPPED * there:
            raise refused(
                "swapped_coordinates",
                f"{len(bounds):,} of {there:,} geometries have latitudes beyond 90 degrees, and would be right with "
                "latitude and longitude exchanged: give swap_xy=true",
                swap_xy=True,
            )

    def _check_lost(self, before: int, after: int) -> None:
        """Refuse the layer if most geometries are lost: a few are errors in the data, most of them an error in the
        CRS."""
        if before >= self.fewest and after < before / 2:
            raise refused(
                "wrong_crs",
                f"{before - after:,} of {before:,} geometries are not on Earth if their CRS is "
                f"{self.project.source[:60]}, as the file says: give source_crs with the right one",
                source_crs=None,
            )


def _present_count(geometries: Geometries) -> int:
    return int((~shapely.is_missing(geometries)).sum())
