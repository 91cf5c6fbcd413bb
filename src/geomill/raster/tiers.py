"""What a COG is made for, and how it is therefore encoded."""

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
        """Whether the files go to the store's class for what is seldom read."""
        return self is Tier.ARCHIVE


class Resampling(StrEnum):
    AUTO = "auto"
    NEAREST = "nearest"
    BILINEAR = "bilinear"
    CUBIC = "cubic"


FAITHFUL_AS_JPEG = (RasterType.RGB, RasterType.RGBA, RasterType.SINGLE_BAND)
BLOCK = 512
QUICK, THOROUGH = 1, 6
"""Levels of DEFLATE. Behind a predictor, photographs and measurements in integers leave little to search for: level 1
is up to twice as fast as 6, and files differ by 2 % either way, seldom by 5. Classes and masks would be a quarter
larger by 1, floats up to 6 %."""


def check_tier(tier: Tier, kind: RasterType, dtype: str) -> None:
    """JPEG changes values: for pictures that is invisible, for measurements and classes it is damage."""
    if tier is Tier.VISUALIZATION and (dtype != "uint8" or kind not in FAITHFUL_AS_JPEG):
        raise refused(
            "tier_unfit",
            f"the tier 'visualization' would ruin a {kind.value} raster of {dtype}: JPEG is for 8-bit pictures; "
            "choose 'analysis' or 'archive'",
        )


def resampling_for(kind: RasterType, requested: Resampling) -> Resampling:
    """Classes are never mixed, whatever was asked for."""
    if kind is RasterType.CATEGORICAL:
        return Resampling.NEAREST
    return Resampling.BILINEAR if requested is Resampling.AUTO else requested


def overviews_for(kind: RasterType) -> str:
    return "MODE" if kind is RasterType.CATEGORICAL else "AVERAGE"


def creation_options(tier: Tier, kind: RasterType, dtype: str, bits: int | None, quality: int = 85) -> dict[str, Any]:
    """For GDAL's COG driver."""
    options: dict[str, Any] = {
        "BLOCKSIZE": BLOCK,
        "BIGTIFF": "IF_SAFER",
        "NUM_THREADS": 1,  # the cores are busy with other tiles
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
