"""Where the coordinates of a CSV file are: by what the submitter says, or by the usual names of columns."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from geomill.datasets.refusals import refused
from geomill.vector.facts import Reading

_DEGREES = (("longitude", "latitude"), ("lon", "lat"), ("long", "lat"), ("lng", "lat"))
_PLANE = (("x", "y"), ("easting", "northing"), ("coord_x", "coord_y"), ("point_x", "point_y"))
_TEXT = ("wkt", "geom", "geometry", "the_geom", "wkt_geom", "shape")
_SEPARATORS = ",;\t|"
_LONGEST_LINE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CsvPlaces:
    options: dict[str, str]
    """GDAL's."""
    crs: str | None
    """Where the names say it."""


def places(path: Path, name: str, reading: Reading) -> CsvPlaces:
    columns = _columns(path)
    by_lower = {column.lower().strip(): column for column in columns}
    common = {"KEEP_GEOM_COLUMNS": "NO", "AUTODETECT_TYPE": "YES", "EMPTY_STRING_AS_NULL": "YES"}
    if reading.wkt_column:
        wkt = _present(reading.wkt_column, by_lower, columns, "wkt_column")
        return CsvPlaces({**common, "GEOM_POSSIBLE_NAMES": wkt}, None)
    if reading.x_column or reading.y_column:
        x = _present(reading.x_column or "", by_lower, columns, "x_column")
        y = _present(reading.y_column or "", by_lower, columns, "y_column")
        return CsvPlaces({**common, "X_POSSIBLE_NAMES": x, "Y_POSSIBLE_NAMES": y}, None)
    for pairs, crs in ((_DEGREES, "EPSG:4326"), (_PLANE, None)):
        for x, y in pairs:
            if x in by_lower and y in by_lower:
                return CsvPlaces({**common, "X_POSSIBLE_NAMES": by_lower[x], "Y_POSSIBLE_NAMES": by_lower[y]}, crs)
    for wkt in _TEXT:
        if wkt in by_lower:
            return CsvPlaces({**common, "GEOM_POSSIBLE_NAMES": by_lower[wkt]}, None)
    raise refused(
        "no_geometry",
        f"'{name}' has no columns that are known to hold coordinates, only {', '.join(columns)[:200]}: "
        "give x_column and y_column, or wkt_column",
    )


def _present(wanted: str, by_lower: dict[str, str], columns: list[str], field: str) -> str:
    found = by_lower.get(wanted.lower().strip())
    if found is None:
        raise refused("no_geometry", f"{field}: there is no column '{wanted}' in {', '.join(columns)[:200]}")
    return found


def _columns(path: Path) -> list[str]:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    text = line.decode("utf-8-sig", errors="replace").strip("\r\n")
    separator = max(_SEPARATORS, key=text.count)
    return next(csv.reader(io.StringIO(text), delimiter=separator), [])
