"""Transforms coordinates from the CRS of a source to that of its table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyproj
from numpy.typing import NDArray
from pyproj.exceptions import CRSError
from pyproj.network import set_network_enabled  # type: ignore[attr-defined]  # a public function without a stub

from geomill.datasets.refusals import refused
from geomill.domain.crs import EXAMPLES, is_crs

KEEP = "source"
"""The value of `target_crs` that keeps the CRS of the source."""
PLATE_CARREE = "EPSG:4326"
DEGREES = 360.0


def parsed(text: str, field: str) -> pyproj.CRS:
    """Parse a CRS. `field` is its name in messages. Only text in the form of a code or of WKT reaches PROJ."""
    if not is_crs(text):
        raise refused("bad_crs", f"{field} '{text[:80]}' is not a CRS: write it as {EXAMPLES}", **_option(field))
    try:
        return pyproj.CRS.from_user_input(text)
    except CRSError as error:
        raise refused(
            "bad_crs",
            f"{field} '{text[:80]}' is not a CRS: write it as EPSG:32633 ({_brief(error)})",
            **_option(field),
        ) from error


def _option(field: str) -> dict[str, None]:
    """Return the option that mends a CRS: the one that names it, or the one that replaces that of the file."""
    return {field if field == "target_crs" else "source_crs": None}


def from_json(value: dict[str, Any], field: str) -> pyproj.CRS:
    """Parse a CRS in PROJJSON, which only files contain."""
    try:
        return pyproj.CRS.from_json_dict(value)
    except (CRSError, TypeError, ValueError) as error:
        raise refused("bad_crs", f"{field} is not a CRS in PROJJSON ({_brief(error)})") from error


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:120]


def named(crs: pyproj.CRS) -> str:
    """Return the code of a CRS, or its WKT if it has none."""
    code = crs.to_authority(min_confidence=70)
    return ":".join(code) if code else crs.to_wkt()


def srid_of(crs: pyproj.CRS, field: str) -> int:
    """Return the number of the CRS in PostGIS."""
    code = crs.to_epsg(min_confidence=70)
    if code is None and named(crs) == "OGC:CRS84":
        code = 4326
    if code is None:
        raise refused(
            "bad_crs",
            f"{field} '{crs.name}' has no EPSG code, and a table needs one: give target_crs, such as {PLATE_CARREE}",
            target_crs=PLATE_CARREE,
        )
    return code


@dataclass(frozen=True)
class Projection:
    """Transforms coordinates in rows. x or longitude comes first, whatever axis order the CRS declares."""

    source: str
    target: str

    @cached_property
    def same(self) -> bool:
        source, target = parsed(self.source, "the CRS"), parsed(self.target, "target_crs")
        return source.equals(target, ignore_axis_order=True)

    @cached_property
    def geographic(self) -> bool:
        """Whether the target is in degrees."""
        return bool(parsed(self.target, "target_crs").is_geographic)

    @cached_property
    def _transformer(self) -> Any:
        set_network_enabled(active=False)
        return pyproj.Transformer.from_crs(self.source, self.target, always_xy=True)

    def bounds(self, bounds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """Return transformed bounds that contain everything in these bounds, poles included."""
        west, south, east, north = self._transformer.transform_bounds(*bounds)
        return float(west), float(south), float(east), float(north)

    def __call__(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Transform coordinates. Those that cannot be transformed become infinite."""
        columns = self._transformer.transform(*coordinates.T, errcheck=False)
        return np.column_stack(columns)
