"""The formats in which features are downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DownloadFormat(StrEnum):
    GEOPACKAGE = "gpkg"
    GEOPARQUET = "parquet"
    FLATGEOBUF = "fgb"
    SHAPEFILE = "shp"
    GEOJSON = "geojson"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class FileKind:
    suffix: str
    media_type: str
    driver: str = ""
    """GDAL's driver, if GDAL writes the file."""
    degrees: bool = False
    """Whether the format has coordinates in degrees only."""


KINDS = {
    DownloadFormat.GEOPACKAGE: FileKind("gpkg", "application/geopackage+sqlite3", "GPKG"),
    DownloadFormat.GEOPARQUET: FileKind("parquet", "application/vnd.apache.parquet"),
    DownloadFormat.FLATGEOBUF: FileKind("fgb", "application/vnd.flatgeobuf", "FlatGeobuf"),
    DownloadFormat.SHAPEFILE: FileKind("zip", "application/zip", "ESRI Shapefile"),
    DownloadFormat.GEOJSON: FileKind("geojson", "application/geo+json", degrees=True),
    DownloadFormat.CSV: FileKind("csv", "text/csv; charset=utf-8", degrees=True),
}
