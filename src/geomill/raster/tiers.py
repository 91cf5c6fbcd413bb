"""Tiers: the purposes of a COG and their encodings."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from geomill.datasets.refusals import refused
from geomill.raster.facts import RasterType


class Tier(StrEnum):
    VISUALIZATION = "visualization"
    ANALYSIS = "analysis"
    ARCHIVE = "archive"

    @property
    def cool(self) -> bool:
        """Whether the files go to the store's class for rarely read data."""
        return self is Tier.ARCHIVE


class Resampling(StrEnum):
    AUTO = "auto"
    NEAREST = "nearest"
    BILINEAR = "bilinear"
    CUBIC = "cubic"


FAITHFUL_AS_JPEG = (RasterType.RGB, RasterType.RGBA, RasterType.SINGLE_BAND)
BLOCK = 512
QUICK, THOROUGH = 1, 6
"""DEFLATE levels. After a predictor, photographs and integer measurements compress little: level 1 is up to twice as
fast as 6, and file sizes differ by 2 %, rarely 5 %. At level 1 classes and masks would be a quarter larger, floats up
to 6 %."""


def check_tier(tier: Tier, kind: RasterType, dtype: str) -> None:
    """Refuse JPEG for measurements and classes, whose values it would damage. In photographs the change is
    invisible."""
    if tier is Tier.VISUALIZATION and (dtype != "uint8" or kind not in FAITHFUL_AS_JPEG):
        raise refused(
            "tier_unfit",
            f"the tier 'visualization' would damage a {kind.value} raster of {dtype}: JPEG is for 8-bit images; "
            "choose 'analysis' or 'archive'",
            output_tier=[Tier.ANALYSIS.value, Tier.ARCHIVE.value],
        )


def resampling_for(kind: RasterType, requested: Resampling) -> Resampling:
    """Return the resampling method. Classes are never mixed, even if another method was requested."""
    if kind is RasterType.CATEGORICAL:
        return Resampling.NEAREST
    return Resampling.BILINEAR if requested is Resampling.AUTO else requested


def overviews_for(kind: RasterType) -> str:
    return "MODE" if kind is RasterType.CATEGORICAL else "AVERAGE"


def creation_options(tier: Tier, kind: RasterType, dtype: str, bits: int | None, quality: int = 85) -> dict[str, Any]:
    """Return the options of GDAL's COG driver."""
    options: dict[str, Any] = {
        "BLOCKSIZE": BLOCK,
        "BIGTIFF": "IF_SAFER",
        "NUM_THREADS": 1,  # other tiles use the cores
        "OVERVIEW_RESAMPLING": overviews_for(kind),
        "WARP_RESAMPLING": "NEAREST",
        **_codec(tier, dtype, quality, deflate_level(kind, dtype, bits)),
    }
    if bits is not None:
        options |= {"NBITS": bits, "PREDICTOR": "NO"}
    return options


def deflate_level(kind: RasterType, dtype: str, bits: int | None = None) -> int:
    repetitive = kind is RasterType.CATEGORICAL or bits is not None or dtype.startswith("float")
    return THOROUGH if repetitive else QUICK


def _codec(tier: Tier, dtype: str, quality: int, level: int) -> dict[str, Any]:
    if tier is Tier.VISUALIZATION:
        return {"COMPRESS": "JPEG", "QUALITY": quality}
    if tier is Tier.ANALYSIS:
        return {"COMPRESS": "DEFLATE", "LEVEL": level, "PREDICTOR": "YES"}
    if dtype in ("float32", "float64"):
        return {"COMPRESS": "LERC_ZSTD", "MAX_Z_ERROR": 0, "LEVEL": 15}
    return {"COMPRESS": "ZSTD", "LEVEL": 15, "PREDICTOR": "YES"}
