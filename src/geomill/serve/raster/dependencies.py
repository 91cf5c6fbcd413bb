"""Dependencies of TiTiler's routes: they find the raster by asset id and check limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from titiler.core.algorithm import algorithms
from titiler.core.dependencies import (
    BidxExprParams,
    ColorMapParams,
    DatasetParams,
    HistogramParams,
    ImageRenderingParams,
    PartFeatureParams,
    PreviewParams,
    StatisticsParams,
    TileParams,
)

from geomill.domain.assets.served import Served
from geomill.domain.assets.style import DEFAULT, DRAWING, RasterStyle
from geomill.domain.objectname import ObjectName
from geomill.errors import InputError, NotFoundError, Problem
from geomill.raster.opening import StoreSession
from geomill.serve import caching
from geomill.serve.access import TheSight
from geomill.serve.directory import Directory
from geomill.serve.quick import on_the_loop
from geomill.serve.raster import limits
from geomill.serve.raster.jobs import job_raster
from geomill.serve.raster.mosaics import Mosaics
from geomill.serve.raster.painting import ChosenStyle
from geomill.serve.raster.readers import RasterSource, part_size
from geomill.storage import Storage
from geomill.storage.gdal import GdalOptions

RAW = ("tif", "npy")
"""Formats for programs, with unscaled values."""
PICTURES = ("tile", "preview", "bbox_image", "feature_image", "get_map")
"""Names of TiTiler's image routes."""


@dataclass(frozen=True, slots=True)
class RasterShelf:
    """Finds the rasters of a zone."""

    directory: Directory
    storage: Storage
    mosaics: Mosaics
    base_environment: dict[str, Any]
    """GDAL options, with credentials that last."""

    async def environment(self) -> dict[str, Any]:
        """Return the GDAL options for one request. Those of a managed identity end, so they are fetched each time."""
        if not self.storage.uses_identity(self.directory.zone):
            return self.base_environment
        return {**self.base_environment, "session": StoreSession(await self.credentials())}

    async def credentials(self) -> GdalOptions:
        return await self.storage.run(partial(self.storage.gdal_options, self.directory.zone))

    def source(self, served: Served) -> RasterSource:
        name = self._name(served.blob_path)
        if name is None:
            raise NotFoundError(
                f"the asset '{served.asset_id}' is not served as one raster",
                remedy="name a scene of the series as {asset_id}.{scene_id}",
            )
        return RasterSource(
            served,
            name,
            self.storage.gdal_path(name),
            self.mosaics,
            scheme=self._name(served.scheme_path),
            gdal_path=self._gdal_path,
        )

    def _gdal_path(self, place: str) -> str:
        container, _, path = place.partition("/")
        return self.storage.gdal_path(ObjectName(self.directory.zone, container, path))

    def _name(self, place: str | None) -> ObjectName | None:
        container, _, path = (place or "").partition("/")
        return ObjectName(self.directory.zone, container, path) if path else None


async def raster_source(
    request: Request,
    sight: TheSight,
    asset_id: Annotated[str, Path(description="Id of a raster, or {asset_id}.{scene_id}", max_length=256)],
) -> RasterSource:
    limits.check(request)
    shelf: RasterShelf = request.app.state.shelf
    served = await shelf.directory.raster(asset_id, sight)
    source = shelf.source(served)
    caching.note(request, served)
    return replace(source, series=await shelf.directory.series(served)) if served.series else source


async def job_source(
    request: Request, sight: TheSight, job_id: Annotated[str, Path(description="Id of a stage job", max_length=64)]
) -> RasterSource:
    """Return the unpublished raster of a stage job, which only staff may see."""
    limits.check(request)
    shelf: RasterShelf = request.app.state.shelf
    served = await job_raster(shelf.directory, shelf.storage, job_id, sight)
    source = shelf.source(served)
    caching.note(request, served)
    return source


async def environment(request: Request) -> dict[str, Any]:
    shelf: RasterShelf = request.app.state.shelf
    return await shelf.environment()


dataset_params = on_the_loop(DatasetParams)
tile_params = on_the_loop(TileParams)
statistics_params = on_the_loop(StatisticsParams)
histogram_params = on_the_loop(HistogramParams)
preview_params = on_the_loop(PreviewParams)
layer_params = on_the_loop(BidxExprParams)
image_params = on_the_loop(ImageRenderingParams)
color_params = on_the_loop(ColorMapParams)
process_params = on_the_loop(algorithms.dependency)
_part_params = on_the_loop(PartFeatureParams)


async def part_params(params: Annotated[PartFeatureParams, Depends(_part_params)]) -> PartFeatureParams:
    params.max_size = part_size(params.max_size, params.width, params.height)
    return params


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Options of `open_reader`."""

    house: bool
    values: bool
    chosen: ChosenStyle | None

    def as_dict(self) -> dict[str, Any]:
        return {"house": self.house, "values": self.values, "chosen": self.chosen}


def reader_options(source_dependency: Callable[..., Any]) -> Callable[..., Awaitable[ReaderOptions]]:
    """Return the dependency. It reads the styles of the source that `source_dependency` finds."""

    async def options(
        request: Request,
        source: RasterSource = Depends(source_dependency),  # noqa: B008  not a global name
        style: Annotated[
            str | None,
            Query(max_length=64, description="Name of a style of the asset; `automatic` is the computed one."),
        ] = None,
    ) -> ReaderOptions:
        """Apply styles and default colours only to images. Raw and computed values stay unchanged."""
        query = request.query_params
        values = request.path_params.get("format") in RAW or query.get("tile_format") in RAW or query.get("f") in RAW
        picture = request.scope["route"].name in PICTURES and not values
        computed = "expression" in query or "algorithm" in query
        chosen = chosen_style(source.served, style, drawn=any(name in query for name in DRAWING))
        if style and values:
            raise _wrong_style("a style is for pictures; tif and npy have the values themselves")
        return ReaderOptions(picture and not computed, values, chosen if picture and not computed else None)

    return options


def chosen_style(served: Served, name: str | None, *, drawn: bool) -> ChosenStyle | None:
    """Return the style of a picture. A caller who says by parameters how to draw gets the default style only by its
    name. The picture of a whole series is made of its scenes' own colours. Raises `NotFoundError`."""
    if name is None and drawn:
        return None
    style = served.styles.find(name)
    named = name not in (None, "", DEFAULT)
    if served.series:
        if style and named:
            raise _wrong_style("the scenes of a series may differ, so a style is for one scene: {asset_id}.{scene_id}")
        return None
    return ChosenStyle(style, named) if isinstance(style, RasterStyle) else None


def _wrong_style(message: str) -> InputError:
    problem = Problem("style", message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
