"""Draws one image of a series of rasters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.handlers.raster.create_scene import CreateSceneOutput, check_as_many
from geomill.handlers.raster.validate import ValidateOutput
from geomill.raster.rendering import stretches
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

if TYPE_CHECKING:
    from geomill.raster.overview import OverviewScene


class CreateOverviewParams(BaseModel):
    validated: Annotated[list[dict[str, Any]], Field(min_length=1)]
    """Outputs of `raster.validate`, one for each raster, or references to large outputs."""
    scenes: list[dict[str, Any]]
    """Outputs of `raster.create_scene`, in the same order."""
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    preview_pixels: Annotated[int, Field(ge=64, le=2048)] = 1024
    thumbnail_pixels: Annotated[int, Field(ge=16, le=1024)] = 256

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        check_as_many(self.validated, self.scenes)
        return self


class CreateOverviewOutput(BaseModel):
    files: list[FileEntry]
    blob_path: str
    zooms: list[int]
    """For each raster, the zoom at which map pixels are as large as its own."""
    order: list[int]
    """Numbers of the rasters, from top to bottom."""


@register_handler(
    "raster.create_overview",
    queue="container-tasks",
    timeout_seconds=7200,
    params=CreateOverviewParams,
    output=CreateOverviewOutput,
)
def create_overview(ctx: HandlerContext[CreateOverviewParams]) -> CreateOverviewOutput:
    """Stacks all rasters of a series in one small image, the latest on top."""
    from geomill.raster import cog
    from geomill.raster.opening import environment
    from geomill.raster.overview import as_cog, overview, overview_grid
    from geomill.raster.preview import encoded, smaller

    params = ctx.params
    scenes = [_placed(ctx, number) for number in range(len(params.scenes))]
    order = sorted(range(len(scenes)), key=lambda number: (scenes[number].taken_at, number), reverse=True)
    grid = overview_grid([placed.scene.bbox for placed in scenes], max(placed.zoom for placed in scenes))
    canvas = overview(grid, _from_the_top(ctx, [scenes[number].scene for number in order]))
    with environment(ctx.storage, Zone.SILVER, params.output_container):
        pictures = (
            ("overview.tif", as_cog(grid, canvas), cog.MEDIA_TYPE, "visual"),
            ("preview.webp", encoded(smaller(canvas, params.preview_pixels), "WEBP"), "image/webp", "overview"),
            ("thumbnail.png", encoded(smaller(canvas, params.thumbnail_pixels), "PNG"), "image/png", "thumbnail"),
        )
    files = []
    for file_name, data, media_type, role in pictures:
        name = ObjectName(Zone.SILVER, params.output_container, f"{params.blob_prefix}/{file_name}")
        files.append(FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=media_type), media_type, role))
    return CreateOverviewOutput(
        files=files,
        blob_path=f"{files[0].container}/{files[0].path}",
        zooms=[placed.zoom for placed in scenes],
        order=order,
    )


@dataclass(frozen=True)
class _PlacedScene:
    scene: OverviewScene
    zoom: int
    taken_at: str


def _placed(ctx: HandlerContext[CreateOverviewParams], number: int) -> _PlacedScene:
    """Read one scene and keep only the values that the overview needs, because a thousand full results do not fit into
    memory."""
    from geomill.raster.opening import opened
    from geomill.raster.overview import OverviewScene, zoom_of

    times = ValidateOutput.model_validate(ctx.read_output(ctx.params.validated[number])).times
    created = CreateSceneOutput.model_validate(ctx.read_output(ctx.params.scenes[number]))
    kind, name = created.cog.plan.raster_type, created.cog.files[0].name
    statistics = stretches(kind, [band.model_dump() for band in created.cog.statistics])
    scene = OverviewScene(kind, statistics, created.preview.bbox, lambda: opened(ctx.storage, name))
    return _PlacedScene(scene, zoom_of(created.cog.plan.grid), times.datetime or times.end_datetime or "")


def _from_the_top(ctx: HandlerContext[CreateOverviewParams], scenes: list[OverviewScene]) -> Iterator[OverviewScene]:
    for number, scene in enumerate(scenes, 1):
        ctx.raise_if_cancelled()
        ctx.progress(0.9 * number / len(scenes), message=f"raster {number} of {len(scenes)}")
        yield scene
