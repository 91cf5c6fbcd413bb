"""Finds the coordinate columns of a CSV file: as the submitter says, or by their usual names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from geomill.datasets.refusals import refused
from geomill.domain.folding import folded
from geomill.vector.csv_profile import SEPARATORS, SRID, CsvProfile, is_number, point_number
from geomill.vector.facts import Reading, Remark

LONGITUDES = (
    "longitude", "lon", "long", "lng", "longitud", "longitudine", "laenge", "lange", "laengengrad", "langengrad",
    "decimallongitude", "gps_longitude", "gps_lon", "lon_wgs84", "dolzina", "lengdegrad", "langdgrad", "x_lon",
)  # fmt: skip
LATITUDES = (
    "latitude", "lat", "latitud", "latitudine", "breite", "breitengrad", "decimallatitude", "gps_latitude", "gps_lat",
    "lat_wgs84", "sirina", "breddegrad", "breddgrad", "y_lat",
)  # fmt: skip
_PLANE = (
    ("x", "y"), ("easting", "northing"), ("coord_x", "coord_y"), ("point_x", "point_y"), ("rechtswert", "hochwert"),
    ("este", "norte"),
)  # fmt: skip
_TEXT = ("wkt", "geom", "geometry", "the_geom", "wkt_geom", "shape")
DEGREES = "EPSG:4326"
_BETWEEN_CORNERS = re.compile(r"[(),]")
_MOST_OUT = 0.1
"""The part of the latitudes beyond 90 degrees from which columns count as swapped."""


@dataclass(frozen=True, slots=True)
class CsvPlaces:
    options: dict[str, str]
    """Options for GDAL."""
    crs: str | None
    """The CRS, if names or values of the columns imply one."""
    remarks: list[Remark] = field(default_factory=list)
    ewkt: int | None = None
    """The number of the column of EWKT, which GDAL does not read."""


def places(profile: CsvProfile, name: str, reading: Reading) -> CsvPlaces:
    columns = profile.columns
    by_name = {folded(column).lower().strip(): column for column in reversed(columns)}
    if reading.wkt_column:
        return _text(profile, _present(reading.wkt_column, by_name, columns, "wkt_column"))
    if reading.x_column or reading.y_column:
        x = _present(reading.x_column or "", by_name, columns, "x_column")
        y = _present(reading.y_column or "", by_name, columns, "y_column")
        return _points(profile, x, y, None, named_by_submitter=True)
    longitude, latitude = _first(LONGITUDES, by_name), _first(LATITUDES, by_name)
    if longitude and latitude:
        return _points(profile, longitude, latitude, DEGREES)
    for x, y in _PLANE:
        if x in by_name and y in by_name:
            return _points(profile, by_name[x], by_name[y], None)
    if wkt := _first(_TEXT, by_name):
        return _text(profile, wkt)
    raise refused(
        "no_geometry",
        f"'{name}' has no coordinate columns with a usual name, only {', '.join(columns)[:200]}: "
        "give x_column and y_column, or wkt_column",
        x_column=columns,
        y_column=columns,
    )


def _points(profile: CsvProfile, x: str, y: str, crs: str | None, *, named_by_submitter: bool = False) -> CsvPlaces:
    xs, ys = _numbers(profile, x), _numbers(profile, y)
    _refuse_words(profile, x, y)
    remarks: list[Remark] = []
    if not named_by_submitter and _are_swapped(xs, ys):
        x, y, xs, ys = y, x, ys, xs
        remarks.append(
            Remark(
                code="swapped_coordinates",
                message=f"the values of '{x}' and '{y}' are swapped: '{x}' is taken for the longitude and '{y}' for "
                "the latitude; give x_column and y_column if that is wrong",
                remedies={"x_column": x, "y_column": y},
            )
        )
    if crs is None and _in_degrees(xs, ys):
        crs = DEGREES
        remarks.append(_assumed(f"'{x}' and '{y}'"))
    return CsvPlaces({**_common(profile), "X_POSSIBLE_NAMES": x, "Y_POSSIBLE_NAMES": y}, crs, remarks)


def _refuse_words(profile: CsvProfile, x: str, y: str) -> None:
    values = [value for column in (x, y) for value in profile.values(profile.columns.index(column))]
    if values and not any(is_number(value) or point_number(value) for value in values):
        raise refused(
            "no_geometry",
            f"the values of '{x}' and '{y}' are not numbers, such as '{values[0][:40]}': write decimal degrees",
        )


def _text(profile: CsvProfile, column: str) -> CsvPlaces:
    number = profile.columns.index(column)
    texts = profile.values(number)
    options = {**_common(profile), "GEOM_POSSIBLE_NAMES": column}
    srids = {match[1] for match in map(SRID.match, texts) if match}
    if len(srids) > 1:
        raise refused(
            "wrong_crs",
            f"the geometries of '{column}' have the SRIDs {', '.join(sorted(srids))[:100]}: write them in one system",
        )
    if srids:
        srid = int(srids.pop())
        return CsvPlaces(options, f"EPSG:{srid}" if srid else None, ewkt=number)
    corners = [corner for text in texts for corner in _corners(text)]
    if not _in_degrees([x for x, _ in corners], [y for _, y in corners]):
        return CsvPlaces(options, None)
    return CsvPlaces(options, DEGREES, [_assumed(f"'{column}'")])


def _corners(wkt: str) -> Iterator[tuple[float, float]]:
    """Yield the coordinates in a text, which may be no WKT. Parsers of geometries recurse into it without a limit."""
    for words in map(str.split, _BETWEEN_CORNERS.split(wkt)):
        if len(words) > 1 and (x := _number(words[0])) is not None and (y := _number(words[1])) is not None:
            yield x, y


def _assumed(columns: str) -> Remark:
    message = f"the values of {columns} fit degrees, so their CRS is taken for {DEGREES}: give source_crs if not"
    return Remark(code="crs_assumed", message=message, remedies={"source_crs": DEGREES})


def _common(profile: CsvProfile) -> dict[str, str]:
    return {
        "KEEP_GEOM_COLUMNS": "NO",
        "AUTODETECT_TYPE": "YES",
        "EMPTY_STRING_AS_NULL": "YES",
        "SEPARATOR": SEPARATORS[profile.separator],
    }


def _numbers(profile: CsvProfile, column: str) -> list[float | None]:
    """Return the column in the sample. A value that is no number is None."""
    number = profile.columns.index(column)
    return [_number(row[number]) if number < len(row) else None for row in profile.rows]


def _number(value: str) -> float | None:
    try:
        number = float(point_number(value) or value if "," in value else value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _are_swapped(longitudes: Sequence[float | None], latitudes: Sequence[float | None]) -> bool:
    """Whether many latitudes are impossible, and all rows are possible the other way round."""
    pairs = [(x, y) for x, y in zip(longitudes, latitudes, strict=True) if x is not None and y is not None]
    beyond = sum(abs(y) > 90 for _, y in pairs)
    possible = all(abs(x) <= 90 and abs(y) <= 180 for x, y in pairs)
    return bool(pairs) and possible and beyond > _MOST_OUT * len(pairs)


def _in_degrees(xs: Sequence[float | None], ys: Sequence[float | None]) -> bool:
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return bool(pairs) and all(abs(x) <= 180 and abs(y) <= 90 for x, y in pairs)


def _first(names: Sequence[str], by_name: dict[str, str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)


def _present(requested: str, by_name: dict[str, str], columns: list[str], option: str) -> str:
    if requested in columns:
        return requested
    column = by_name.get(folded(requested).lower().strip())
    if column is None:
        raise refused(
            "no_geometry",
            f"{option}: there is no column '{requested}' in {', '.join(columns)[:200]}",
            **{option: columns},
        )
    return column
