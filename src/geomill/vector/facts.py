"""The facts about a layer that are known before its features are read. Tasks pass them on as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from geomill.contract.inspection import KnownFrom
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
    """A kind of geometries that fit into one table."""

    POINT = "point"
    LINE = "line"
    POLYGON = "polygon"


SUFFIXES = {Family.POINT: "_points", Family.LINE: "_lines", Family.POLYGON: "_areas"}
"""The suffixes of the tables of a split layer."""


class Mixed(StrEnum):
    """The rule for a layer of several families."""

    REFUSE = "refuse"
    SPLIT = "split"


class DateOrder(StrEnum):
    """The order in which a text file writes day, month and year."""

    DMY = "dmy"
    MDY = "mdy"


class Remark(BaseModel):
    """Something about a source that was assumed or done. `remedies` are the options that change it, as in a refusal."""

    code: str
    message: str
    remedies: dict[str, Any] = {}


class LayerText(BaseModel):
    """The encoding of the text of a layer."""

    encoding: str
    known_from: KnownFrom


class Reading(BaseModel):
    """The submitter's instructions for reading a source, if the file lacks them or has wrong ones."""

    layer: str | None = None
    source_crs: str | None = None
    encoding: str | None = None
    x_column: str | None = None
    y_column: str | None = None
    wkt_column: str | None = None
    date_order: DateOrder | None = None
    swap_xy: bool = False


class LayerColumn(BaseModel):
    """A column. `source` is its name in the file, `name` its name in the table, `type` its PostgreSQL type."""

    source: str
    name: str
    type: str


class LayerFacts(BaseModel):
    format: Format
    layer: str | None
    rows: int
    crs: CrsText
    """A code such as `EPSG:4326`, or WKT if there is none."""
    columns: list[LayerColumn]
    text: LayerText | None = None


class LoadingRules(BaseModel):
    """The rules for loading every chunk."""

    target_crs: CrsText
    srid: int
    family: Family
    points: Literal["Point", "MultiPoint"] = "Point"
    keep_z: bool = False
    mixed: Mixed = Mixed.REFUSE

    def type_of(self, family: Family) -> str:
        """Return the geometry type of a family's table."""
        return {Family.LINE: "MultiLineString", Family.POLYGON: "MultiPolygon"}.get(family, self.points)

    @property
    def families(self) -> tuple[Family, ...]:
        """The families that get a table, the main one first."""
        others = [family for family in Family if family is not self.family]
        return (self.family, *others) if self.mixed is Mixed.SPLIT else (self.family,)


class Chunk(BaseModel):
    """A range from `start` to before `stop`: feature ids of a GeoPackage, row groups of Parquet, otherwise row
    numbers."""

    number: int
    start: int
    stop: int


class LoadingPlan(BaseModel):
    """The plan of a load: made once, used for every chunk."""

    source: Source
    reading: Reading
    facts: LayerFacts
    rules: LoadingRules
    staging: str
    """The name of the table in the staging schema that chunks are loaded into."""


class LayerExtent(BaseModel):
    """The hull of the loaded features, with longitudes around 0 and around 180. At least one of them is not torn."""

    hull: list[tuple[float, float]] = []
    pacific: list[tuple[float, float]] = []


class Loaded(BaseModel):
    """The outcome of loading a chunk."""

    chunk: int
    read: int
    rows: dict[str, int]
    """The number of rows by family. Rows without a geometry count for the main family."""
    repairs: dict[str, int]
    filled: dict[str, int]
    """The number of rows with a value, by column."""
    extent: LayerExtent
    seconds: Annotated[float, Field(ge=0)] = 0.0
    resumed: bool = False
    """Whether an earlier attempt loaded it."""
