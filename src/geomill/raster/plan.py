"""What the tiling decides once and every tile obeys; and what each tile answers. JSON between tasks."""

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
    """Statistics of large pieces are taken as of this overview: of every pixel at 0, of every fourth each way at 2."""

    @property
    def recipe(self) -> CogRecipe:
        from geomill.raster.cog import CogRecipe

        step = 2**self.overview_level
        return CogRecipe(self.grid, self.raster_type, self.tier, self.resampling, self.ranges, self.quality, step)


class MosaicPart(BaseModel):
    """A COG, and the window of the grid that it is."""

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
    """Of a file that is made from this one."""
    base = file_name.rpartition("/")[2].rpartition(".")[0] or file_name.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", base).strip("-")[:100] or "raster"


def intermediate(prefix: str, tile: Tile) -> ObjectName:
    return ObjectName(Zone.SILVER, INTERMEDIATE_CONTAINER, f"{prefix}/{tile.tile_id}.tif")
