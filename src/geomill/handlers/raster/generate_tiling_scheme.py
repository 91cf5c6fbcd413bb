"""Divides the output of a large raster into tiles, for all later steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.outputs import GEOJSON_TYPE, RASTER_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.raster.facts import RasterFacts
from geomill.raster.grid import BLOCK, LARGEST_TILE, SMALLEST_TILE, Tile, batches, tile_size
from geomill.raster.plan import TilingPlan
from geomill.raster.tiers import Resampling, Tier, check_tier, resampling_for
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

if TYPE_CHECKING:
    from rasterio.io import DatasetReader


class TilingParams(BaseModel):
    source: Source
    facts: RasterFacts
    blob_prefix: str
    target_crs: str = "auto"
    output_tier: Tier = Tier.ANALYSIS
    resampling: Resampling = Resampling.AUTO
    jpeg_quality: Annotated[int, Field(ge=1, le=100)] = 85
    tile_size: Annotated[int | None, Field(ge=SMALLEST_TILE, le=LARGEST_TILE, multiple_of=BLOCK)] = None
    overlap: Annotated[int, Field(ge=16, le=4096)] = 512
    overview_level: Annotated[int, Field(ge=0, le=10)] = 2
    output_container: str = RASTER_CONTAINER
    scheme_path: str | None = None
    """Path of the scheme; below `blob_prefix` by default."""


class TilingOutput(BaseModel):
    plan: TilingPlan
    batches: list[list[Tile]]
    total_tiles: int
    skipped_tiles: int
    grid_dimensions: tuple[int, int]
    tile_size: int
    overlap: int
    strategy: str
    strategy_reason: str
    files: list[FileEntry]
    warnings: list[str]


@register_handler(
    "raster.generate_tiling_scheme",
    queue="container-tasks",
    timeout_seconds=1800,
    params=TilingParams,
    output=TilingOutput,
)
def generate_tiling_scheme(ctx: HandlerContext[TilingParams]) -> TilingOutput:
    """Computes the output grid, divides it into tiles, and chooses the reading strategy."""
    import numpy as np

    from geomill.datasets.freshness import check_unchanged
    from geomill.raster.opening import opened
    from geomill.raster.planning import output_grid
    from geomill.raster.reading import layout
    from geomill.raster.statistics import histogram_ranges

    params, facts = ctx.params, ctx.params.facts
    check_tier(params.output_tier, facts.raster_type, facts.dtype)
    check_unchanged(ctx.storage, params.source)
    pixel = facts.count * np.dtype(facts.dtype).itemsize
    with opened(ctx.storage, params.source.name) as dataset:
        grid, warnings = output_grid(dataset, params.target_crs, params.output_tier)
        way = layout(dataset, remote=ctx.storage.gdal_path(params.source.name).startswith("/vsi"))
        size = params.tile_size or tile_size(grid, pixel)
        plan = TilingPlan(
            grid=grid,
            raster_type=facts.raster_type,
            tier=params.output_tier,
            resampling=resampling_for(facts.raster_type, params.resampling).value,
            ranges=histogram_ranges(facts),
            quality=params.jpeg_quality,
            tile_size=size,
            overview_level=params.overview_level,
        )
        every = list(grid.tiles(size))
        covering, features = _features(dataset, plan, every, params.overlap)
    scheme = {
        "type": "FeatureCollection",
        "features": features,
        "metadata": {
            "source": params.source.file_name,
            "source_crs": facts.crs,
            "grid": grid.model_dump(mode="json"),
            "tile_size": size,
            "overlap": params.overlap,
            "total_tiles": len(covering),
            **_earlier_names(params, plan, every[-1]),
        },
    }
    return TilingOutput(
        plan=plan,
        batches=batches(covering, pixel),
        total_tiles=len(covering),
        skipped_tiles=len(every) - len(covering),
        grid_dimensions=(every[-1].x + 1, every[-1].y + 1),
        tile_size=size,
        overlap=params.overlap,
        strategy=way.strategy.value,
        strategy_reason=way.reason,
        files=[_store(ctx, scheme)],
        warnings=warnings,
    )


def _features(
    dataset: DatasetReader, plan: TilingPlan, every: list[Tile], overlap: int
) -> tuple[list[Tile], list[dict[str, Any]]]:
    """Return the tiles that overlap the source, and their features. Tiles without valid pixels are found only when they
    are rendered, because finding them earlier would read every pixel twice."""
    from geomill.raster.footprint import from_bounds
    from geomill.raster.mosaic import geographic_bounds
    from geomill.raster.reading import source_window

    covering, features = [], []
    for tile in every:
        window = source_window(dataset, plan.grid, tile, overlap)
        if window is None:
            continue
        covering.append(tile)
        bounds = plan.grid.bounds_of(tile)
        geographic = geographic_bounds(plan.grid, bounds)
        features.append(
            {
                "type": "Feature",
                "id": tile.tile_id,
                "geometry": from_bounds(geographic),
                "properties": {
                    "tile_id": tile.tile_id,
                    "window": [tile.column, tile.row, tile.width, tile.height],
                    "source_window": list(window),
                    "bounds": list(bounds),
                    "grid_col": tile.x,
                    "grid_row": tile.y,
                    "pixel_window": dict(zip(("col_off", "row_off", "width", "height"), window, strict=True)),
                    "bounds_4326": list(geographic),
                },
            }
        )
    return covering, features


def _earlier_names(params: TilingParams, plan: TilingPlan, last: Tile) -> dict[str, Any]:
    """Return facts of the scheme under the names of the earlier system, whose readers know them."""
    facts = params.facts
    return {
        "source_blob": params.source.file_name,
        "target_crs": plan.grid.crs,
        "grid_cols": last.x + 1,
        "grid_rows": last.y + 1,
        "raster_metadata": {
            "band_count": facts.count,
            "data_type": facts.dtype,
            "detected_type": facts.raster_type,
        },
    }


def _store(ctx: HandlerContext[TilingParams], scheme: dict[str, Any]) -> FileEntry:
    path = ctx.params.scheme_path or f"{ctx.params.blob_prefix}/tiling_scheme.geojson"
    name = ObjectName(Zone.SILVER, ctx.params.output_container, path)
    data = json.dumps(scheme, separators=(",", ":")).encode()
    return FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=GEOJSON_TYPE), GEOJSON_TYPE, "tiling_scheme")
