"""Detects the format of a file by its content. The name decides only for text in columns.

The format selects the one driver that may open the file. Formats that are programs or lists of other files have none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from geomill.datasets.refusals import refused
from geomill.vector.facts import Format

HEADER_BYTES = 1024 * 1024
ZIP_MAGIC = b"PK\x03\x04"
_GEOPACKAGES = (b"GPKG", b"GP10", b"GP11")
_TEXT_NAMES = (".csv", ".tsv", ".txt")
_LINES_NAMES = (".geojsonl", ".geojsons", ".jsonl", ".ndgeojson", ".ndjson")
_TYPE = re.compile(rb'"type"\s*:\s*"(\w+)"')
_GEOMETRIES = ["Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"]
_REFERENCES = (b"<OGRVRT", b"<VRTDataset", b"<!DOCTYPE", b"<!ENTITY")
_REMEDY = "submit GeoPackage, zipped Shapefile, GeoJSON, FlatGeobuf, GeoParquet, KML, KMZ, or CSV with coordinates"


@dataclass(frozen=True, slots=True)
class Driver:
    """GDAL's names of the driver, none if GDAL is not used, and the file extension that GDAL expects."""

    names: tuple[str, ...]
    extension: str
    random: bool = False
    """Whether rows can be read in any order. If not, a columnar copy is read."""


DRIVERS = {
    Format.GEOPACKAGE: Driver(("GPKG",), ".gpkg", random=True),
    Format.SHAPEFILE: Driver(("ESRI Shapefile",), ".shp", random=True),
    Format.GEOJSON: Driver(("GeoJSON",), ".geojson"),
    Format.GEOJSON_LINES: Driver(("GeoJSONSeq",), ".geojsonl"),
    Format.FLATGEOBUF: Driver(("FlatGeobuf",), ".fgb"),
    Format.GEOPARQUET: Driver((), ".parquet", random=True),
    Format.KML: Driver(("LIBKML", "KML"), ".kml"),
    Format.CSV: Driver(("CSV",), ".csv"),
}


def detect(header: bytes, name: str) -> Format:
    """Return the format. `header` is the first megabyte, or the whole file if it is smaller."""
    if header.startswith(b"SQLite format 3\0"):
        if header[68:72] in _GEOPACKAGES:
            return Format.GEOPACKAGE
        raise refused("unsupported_format", f"'{name}' is an SQLite file, but not a GeoPackage: {_REMEDY}")
    if header.startswith(b"fgb\x03"):
        return Format.FLATGEOBUF
    if header.startswith(b"PAR1"):
        return Format.GEOPARQUET
    if header.startswith(b"\x00\x00\x27\x0a"):
        raise refused(
            "unsupported_format", f"'{name}' is a part of a Shapefile: put .shp, .shx, .dbf and .prj into one ZIP file"
        )
    return _text(header, name)


def _text(header: bytes, name: str) -> Format:
    if header.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refused("bad_encoding", f"'{name}' is text in UTF-16: save it as UTF-8")
    text = header.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"\x1e"):
        return Format.GEOJSON_LINES
    if text.startswith(b"{"):
        return _json(text, name)
    if text.startswith(b"<"):
        return _xml(text, name)
    if name.lower().endswith(_TEXT_NAMES) and text and b"\0" not in header:
        return Format.CSV
    raise refused("unsupported_format", f"the content of '{name}' has no supported format: {_REMEDY}")


def _json(text: bytes, name: str) -> Format:
    line, newline, _ = text.partition(b"\n")
    try:
        first = json.loads(line)
    except ValueError:
        first = None
    if isinstance(first, dict) and first.get("type") == "Feature" and newline:
        return Format.GEOJSON_LINES
    if not newline and first is None and name.lower().endswith(_LINES_NAMES):  # a line longer than the header
        return Format.GEOJSON_LINES
    kinds = {match.decode() for match in _TYPE.findall(text)}
    if kinds & {"FeatureCollection", "Feature", *_GEOMETRIES}:
        return Format.GEOJSON
    raise refused("unsupported_format", f"'{name}' is JSON, but not GeoJSON: {_REMEDY}")


def _xml(text: bytes, name: str) -> Format:
    if any(mark in text for mark in _REFERENCES):
        raise refused(
            "outside_reference", f"'{name}' refers to other files or entities, so it is not opened: {_REMEDY}"
        )
    if re.search(rb"<(\w+:)?kml[\s>]", text[:4096]):
        return Format.KML
    if b"http://www.opengis.net/gml" in text[:65_536]:
        raise refused(
            "unsupported_format",
            f"'{name}' is GML, whose schema lies in other files, so it is not read: convert it with "
            "'ogr2ogr -f GPKG data.gpkg FILE.gml' and submit the GeoPackage",
        )
    raise refused("unsupported_format", f"'{name}' is XML, but not KML: {_REMEDY}")
