"""From the CRS of a source to that of its table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyproj
from numpy.typing import NDArray
from pyproj.exceptions import CRSError
from pyproj.network import set_network_enabled  # type: ignore[attr-defined]  # it is made for this

from geomill.datasets.refusals import refused
from geomill.domain.crs import EXAMPLES, is_crs

KEEP = "source"
"""As `target_crs`: that of the source."""
PLATE_CARREE = "EPSG:4326"
DEGREES = 360.0


def parsed(text: str, field: str) -> pyproj.CRS:
    """`field` is what the caller knows it by. Only what has the form of a name or of WKT reaches PROJ."""
    if not is_crs(text):
        raise refused("bad_crs", f"{field} '{text[:80]}' is no CRS: write it as {EXAMPLES}")
    try:
        return pyproj.CRS.from_user_input(text)
    except CRSError as error:
        raise refused(
            "bad_crs", f"{field} '{text[:80]}' is no CRS: write it as EPSG:32633 ({_brief(error)})"
        ) from error


def from_json(value: dict[str, Any], field: str) -> pyproj.CRS:
    """Of PROJJSON, which only files hold."""
    try:
        return pyproj.CRS.from_json_dict(value)
    except (CRSError, TypeError, ValueError) as error:
        raise refused("bad_crs", f"{field} is no CRS in PROJJSON ({_brief(error)})") from error


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:120]


def named(crs: pyproj.CRS) -> str:
    """By its code where it has one."""
    code = crs.to_authority(min_confidence=70)
    return ":".join(code) if code else crs.to_wkt()


def srid_of(crs: pyproj.CRS, field: str) -> int:
    """The number by which PostGIS knows it."""
    code = crs.to_epsg(min_confidence=70)
    if code is None and named(crs) == "OGC:CRS84":
        code = 4326
    if code is None:
        raise refused(
            "bad_crs",
            f"{field} '{crs.name}' has no EPSG code, and a table needs one: give target_crs, such as {PLATE_CARREE}",
        )
    return code


@dataclass(frozen=True)
class Projection:
    """Coordinates in rows, x or longitude first, whatever the order that the CRS itself declares."""

    source: str
    target: str

    @cached_property
    def same(self) -> bool:
        one, other = parsed(self.source, "the CRS"), parsed(self.target, "target_crs")
        return one.equals(other, ignore_axis_order=True)

    @cached_property
    def geographic(self) -> bool:
        """Whether the target counts in degrees."""
        return bool(parsed(self.target, "target_crs").is_geographic)

    @cached_property
    def _transformer(self) -> Any:
        set_network_enabled(active=False)
        return pyproj.Transformer.from_crs(self.source, self.target, always_xy=True)

    def bounds(self, bounds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """Of all that lies in these bounds, poles included."""
        west, south, east, north = self._transformer.transform_bounds(*bounds)
        return float(west), float(south), float(east), float(north)

    def __call__(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """What cannot be transformed becomes infinite."""
        columns = self._transformer.transform(*coordinates.T, errcheck=False)
        return np.column_stack(columns)
