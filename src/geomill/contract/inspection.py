"""The contents of a file: the answer of `POST /api/platform/inspect`, of `geomill inspect` and of a dry run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from geomill.contract.inputs import ApiInput, Text, storable
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.platform import DDH, PlatformId

Nodata = float | Literal["nan", "inf", "-inf"]
Bounds = tuple[float, float, float, float]


class InspectionOrder(ApiInput):
    """A file in a container of bronze to look into, and the options with which it would be submitted."""

    platform_id: PlatformId = DDH
    container_name: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(storable)]
    file_name: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(storable)]
    data_type: DataType | None = Field(default=None, description="If absent, the content of the file decides")
    workflow_id: Text | None = Field(default=None, description="If absent, data_type decides")
    processing_options: Annotated[dict[str, Any], Field(max_length=100)] = Field(
        default_factory=dict, description="Inputs of the workflow"
    )


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class OptionRemedy(BaseModel):
    """A processing option that solves a problem."""

    option: str
    value: Any = Field(default=None, description="A value that fits the file; null if only the submitter knows it")
    choices: list[str] = Field(default=[], description="The possible values, if they are few")


class InspectionProblem(BaseModel):
    code: str
    severity: Severity = Field(description="`error`: a job would fail; `warning`: a job would run, and do what it says")
    field: str | None = Field(default=None, description="The field of the submission, such as `file_name`")
    message: str
    remedies: list[OptionRemedy] = Field(
        default=[], description="Options that solve it together; none if the file itself must change"
    )


class KnownFrom(StrEnum):
    """Where a fact comes from."""

    FILE = "file"
    FORMAT = "format"
    OPTION = "option"
    DETECTED = "detected"


class EncodingInside(BaseModel):
    name: str
    known_from: KnownFrom


class CrsInside(BaseModel):
    code: str | None = Field(description="Such as `EPSG:32633`; null if it has none")
    name: str
    known_from: KnownFrom


class ColumnInside(BaseModel):
    source: str = Field(description="Its name in the file")
    name: str = Field(description="Its name in the table")
    type: str = Field(description="Its type in PostgreSQL")


class LayerInside(BaseModel):
    name: str | None
    geometry_type: str | None = Field(description="As the layer declares it, or as its features show it")
    rows: int | None = Field(description="Null if only reading the whole file would tell")
    columns: list[ColumnInside] = []
    crs: CrsInside | None = None
    bounds: Bounds | None = Field(default=None, description="In the layer's own coordinates")


class BandInside(BaseModel):
    name: str | None = None
    type: str
    color: str
    nodata: Nodata | None = None
    units: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    minimum: float | None = Field(default=None, description="Minimum of a sample")
    maximum: float | None = None


class RasterInside(BaseModel):
    width: int
    height: int
    pixel_size: tuple[float, float] | None = None
    crs: CrsInside | None = None
    bounds: Bounds | None = Field(default=None, description="In the raster's own coordinates")
    nodata: Nodata | None = None
    raster_type: str | None = None
    compression: str | None = None
    overviews: list[int] = []
    uncompressed_bytes: int
    valid_fraction: float | None = Field(default=None, description="Share of valid pixels in a sample")
    bands: list[BandInside]


class Inspection(BaseModel):
    file_name: str
    container_name: str | None = None
    size_bytes: int
    data_type: DataType | None = None
    format: str | None = Field(default=None, description="Such as `GeoPackage` or `GTiff`; null if it is unknown")
    workflow_id: str | None = Field(default=None, description="The workflow that would run")
    acceptable: bool = Field(default=False, description="Whether no problem is an error")
    complete: bool = Field(
        default=True, description="Whether all of the file was considered; false if only its beginning or header was"
    )
    encoding: EncodingInside | None = None
    crs: CrsInside | None = None
    extent: Bounds | None = Field(
        default=None, description="West, south, east and north in degrees; west > east over the antimeridian"
    )
    layers: list[LayerInside] = []
    raster: RasterInside | None = None
    problems: list[InspectionProblem] = []
