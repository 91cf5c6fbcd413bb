"""Orders: the file that a process writes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from geomill.downloads.formats import DownloadFormat


class DownloadColumn(BaseModel):
    name: str
    type: str


class FeaturesOrder(BaseModel):
    """Features of one table. `statement` selects the columns in their order, and at last the geometry as WKB."""

    kind: Literal["features"] = "features"
    url: str
    password: str | None = None
    """A token, if the URL has no password."""
    statement: str
    format: DownloadFormat
    name: str
    columns: list[DownloadColumn]
    geometry_type: str | None
    srid: int
    most_rows: int
    most_bytes: int


class PixelsOrder(BaseModel):
    """A part of a raster in its own grid, as a cloud-optimized GeoTIFF."""

    kind: Literal["pixels"] = "pixels"
    path: str | None
    vrt: str | None
    options: dict[str, str | int]
    window: tuple[int, int, int, int]
    most_bytes: int


class DownloadOrder(BaseModel):
    folder: str
    parent: int
    work: Annotated[FeaturesOrder | PixelsOrder, Field(discriminator="kind")]


class DownloadOutcome(BaseModel):
    """The last line that a child prints."""

    path: str | None = None
    rows: int | None = None
    error: Literal["too_many_rows", "too_large", "failed"] | None = None
    message: str = ""
