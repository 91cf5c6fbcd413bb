"""What is known about a layer before its features are read. Goes from task to task as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from geomill.datasets.source import Source
from geomill.domain.crs import CrsText


class Format(StrEnum):
    GEOPACKAGE = "GeoPackage"
    SHAPEFILE = "Shapefile"
    GEOJSON = "GeoJSON"
    GEOJSON_LINES = "GeoJSONSeq"
    FLATGEOBUF = "FlatGeobuf"
    GEOPARQUET = "GeoParquet"
    KML = "KML"
    CSV = "CSV"


class Family(StrEnum):
    """Of geometries that fit into one table."""

    POINT = "point"
    LINE = "line"
    POLYGON = "polygon"


SUFFIXES = {Family.POINT: "_points", Family.LINE: "_lines", Family.POLYGON: "_areas"}
"""Of the tables of a layer that is split."""


class Mixed(StrEnum):
    """What to do with a layer of several families."""

    REFUSE = "refuse"
    SPLIT = "split"


class Reading(BaseModel):
    """How a source is read: what the submitter says of it, because the file does not, or says it wrongly."""

    layer: str | None = None
    source_crs: str | None = None
    encoding: str | None = None
    x_column: str | None = None
    y_column: str | None = None
    wkt_column: str | None = None


class LayerColumn(BaseModel):
    """`source` is its name in the file, `name` that in the table, `type` one of PostgreSQL's."""

    source: str
    name: str
    type: str


class LayerFacts(BaseModel):
    format: Format
    layer: str | None
    rows: int
    crs: CrsText
    """`EPSG:4326`, or WKT where there is no code."""
    columns: list[LayerColumn]


class LoadingRules(BaseModel):
    """What the loading of every chunk obeys."""

    target_crs: CrsText
    srid: int
    family: Family
    points: Literal["Point", "MultiPoint"] = "Point"
    keep_z: bool = False
    mixed: Mixed = Mixed.REFUSE

    def type_of(self, family: Family) -> str:
        """Of the geometries of a table."""
        return {Family.LINE: "MultiLineString", Family.POLYGON: "MultiPolygon"}.get(family, self.points)

    @property
    def families(self) -> tuple[Family, ...]:
        """Those that get a table, the main one first."""
        others = [family for family in Family if family is not self.family]
        return (self.family, *others) if self.mixed is Mixed.SPLIT else (self.family,)


class Chunk(BaseModel):
    """From `start` to before `stop`: feature ids of a GeoPackage, row groups of a Parquet file, else row numbers."""

    number: int
    start: int
    stop: int


class LoadingPlan(BaseModel):
    """What the planning decides once and every chunk obeys."""

    source: Source
    reading: Reading
    facts: LayerFacts
    rules: LoadingRules
    staging: str
    """The table that chunks go to, in the staging schema."""


class LayerExtent(BaseModel):
    """The hull of what was loaded, twice: by longitudes around 0 and around 180, so that one of them is not torn."""

    hull: list[tuple[float, float]] = []
    pacific: list[tuple[float, float]] = []


class Loaded(BaseModel):
    """What a chunk has become."""

    chunk: int
    read: int
    rows: dict[str, int]
    """By family; those without a geometry under the main one."""
    repairs: dict[str, int]
    filled: dict[str, int]
    """Of each column, the rows that hold a value."""
    extent: LayerExtent
    seconds: Annotated[float, Field(ge=0)] = 0.0
    resumed: bool = False
    """Whether an earlier attempt had loaded it."""
