"""Facts about a raster, read before its pixels are processed. Tasks pass them on as JSON."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel


class RasterType(StrEnum):
    RGB = "rgb"
    RGBA = "rgba"
    NIR = "nir"
    MULTISPECTRAL = "multispectral"
    DEM = "dem"
    CATEGORICAL = "categorical"
    INDEX = "index"
    CONTINUOUS = "continuous"
    SINGLE_BAND = "single_band"


class Validity(StrEnum):
    """How a raster marks its valid pixels."""

    ALL = "all"
    NODATA = "nodata"
    ALPHA = "alpha"
    MASK = "mask"


class BandFacts(BaseModel):
    name: str | None = None
    units: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    color: str = "undefined"
    minimum: float | None = None
    maximum: float | None = None
    """Minimum and maximum of a sample, in stored values. None if no pixel of the sample was valid."""


class RasterClass(BaseModel):
    """A class of the attribute table."""

    value: int
    name: str
    color: tuple[int, int, int] | None = None


class RasterFacts(BaseModel):
    driver: str
    width: int
    height: int
    count: int
    dtype: str
    bits: int | None = None
    """Bits per value if fewer than the type has: 1 for a bit mask."""
    crs: str
    """An authority code, or WKT."""
    transform: tuple[float, float, float, float, float, float]
    bounds_4326: tuple[float, float, float, float]
    """In degrees. West is greater than east if the raster crosses the antimeridian."""
    nodata: float | Literal["nan", "inf", "-inf"] | None = None
    validity: Validity = Validity.ALL
    palette: bool = False
    block: tuple[int, int]
    """Width and height of a block."""
    tiled: bool
    compression: str | None = None
    interleave: str | None = None
    overviews: list[int] = []
    uncompressed_bytes: int
    valid_fraction: float = 1.0
    raster_type: RasterType = RasterType.CONTINUOUS
    bands: list[BandFacts] = []
    classes: list[RasterClass] = []
    acquired: str | None = None
    """The acquisition time, if the file states it."""


def plain_nodata(value: float | None) -> float | Literal["nan", "inf", "-inf"] | None:
    """Return the nodata value for JSON, which has no NaN."""
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
