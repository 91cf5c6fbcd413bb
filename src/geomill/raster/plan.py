"""The tiling plan, which is the same for all tiles, and the results of tiles. Tasks pass both on as JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from geomill.datasets.outputs import INTERMEDIATE_CONTAINER, FileEntry
from geomill.raster.facts import RasterType
from geomill.raster.grid import Grid, Tile, Window
from geomill.raster.stac import BandSummary
from geomill.raster.tiers import Tier
from geomill.sdk import ObjectName, Zone

if TYPE_CHECKING:
    from geomill.raster.cog import CogRecipe
    from geomill.raster.statistics import BandStatistics


class TilingPlan(BaseModel):
    grid: Grid
    raster_type: RasterType
    tier: Tier
    resampling: str
    ranges: list[tuple[float, float]]
    quality: int = 85
    tile_size: int = 0
    overview_level: int = 2
    """Statistics of large pieces read the pixels of this overview: all at 0, every fourth row and column at 2."""

    @property
    def recipe(self) -> CogRecipe:
        from geomill.raster.cog import CogRecipe

        step = 2**self.overview_level
        return CogRecipe(self.grid, self.raster_type, self.tier, self.resampling, self.ranges, self.quality, step)


class MosaicPart(BaseModel):
    """A COG and its window of the grid."""

    window: Window
    file: FileEntry


class TilePart(MosaicPart):
    window: Tile


def summary(band: BandStatistics) -> BandSummary:
    histogram: dict[str, Any] | None = None
    if band.histogram:
        buckets = [round(count) for count in band.histogram]
        histogram = {"count": len(buckets), "min": band.low, "max": band.high, "buckets": buckets}
    return BandSummary(
        minimum=band.minimum,
        maximum=band.maximum,
        mean=band.mean,
        stddev=band.deviation,
        valid_percent=round(band.valid_percent, 4),
        histogram=histogram,
    )


def stem(file_name: str) -> str:
    """Return the stem of an output file's name."""
    base = file_name.rpartition("/")[2].rpartition(".")[0] or file_name.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", base).strip("-")[:100] or "raster"


def intermediate(prefix: str, tile: Tile) -> ObjectName:
    return ObjectName(Zone.SILVER, INTERMEDIATE_CONTAINER, f"{prefix}/{tile.tile_id}.tif")
