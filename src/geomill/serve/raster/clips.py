"""A part of a raster as a cloud-optimized GeoTIFF, in its own grid and with its own values."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Annotated, Any

import rasterio
from affine import Affine
from fastapi import APIRouter, Depends, Query, Request
from rasterio.crs import CRS
from rasterio.warp import transform_bounds
from starlette.responses import Response

from geomill.contract.extracts import ExtractView
from geomill.domain.crs import check_crs
from geomill.downloads.order import PixelsOrder
from geomill.errors import ConflictError, DownloadTooLarge, InputError, Problem
from geomill.serve.downloads.desk import MOST_BYTES, DownloadDesk
from geomill.serve.downloads.extracts import Extracts
from geomill.serve.raster import dependencies
from geomill.serve.raster.dependencies import RasterShelf
from geomill.serve.raster.limits import MOST_TILES
from geomill.serve.raster.readers import MosaicReader, RasterSource, open_reader

MOST_SAMPLES = 400_000_000
"""The maximum of width, height and bands multiplied."""
MOST_ORDERED_SAMPLES = 40_000_000_000
MOST_ORDERED_FILES = 10_000
WHOLE = "choose a smaller box, or download the whole file: the link `download`"
ORDER_IT = "order it as an extract: send the same request as POST"
COG_TYPE = "image/tiff; application=geotiff; profile=cloud-optimized"
Box = tuple[float, float, float, float]


def router(source_dependency: Callable[..., Any], desk: DownloadDesk, extracts: Extracts | None = None) -> APIRouter:
    routes = APIRouter(tags=["Downloads"])
    if extracts:
        _add_order(routes, source_dependency, extracts)

    @routes.get("/clip.tif", summary="Download a part of the raster", response_class=Response)
    async def clip(
        request: Request,
        bbox: Annotated[str, Query(max_length=200, description="west,south,east,north")],
        bbox_crs: Annotated[str, Query(alias="bbox-crs", max_length=200, description="Reference system of bbox.")] = (
            "EPSG:4326"
        ),
        source: RasterSource = Depends(source_dependency),  # noqa: B008  not a global name
        env: dict[str, Any] = Depends(dependencies.environment),  # noqa: B008
    ) -> Response:
        """The pixels that the box touches, as they are: not resampled and not transformed. In `bbox`, east is before
        north."""
        check_crs(bbox_crs, "bbox-crs")
        box = _box(bbox)
        shelf: RasterShelf = request.app.state.shelf
        options, crs = await shelf.credentials(), CRS.from_user_input(bbox_crs)
        order = await asyncio.to_thread(_order, source, box, crs, env, options, MOST_SAMPLES)
        return await desk.answer(request, order, f"{source.served.title}.tif", COG_TYPE)

    return routes


def _add_order(routes: APIRouter, source_dependency: Callable[..., Any], extracts: Extracts) -> None:
    @routes.post(
        "/clip.tif", summary="Order a part of the raster as an extract", status_code=202, response_model=ExtractView
    )
    async def order_extract(
        request: Request,
        bbox: Annotated[str, Query(max_length=200, description="west,south,east,north")],
        bbox_crs: Annotated[str, Query(alias="bbox-crs", max_length=200, description="Reference system of bbox.")] = (
            "EPSG:4326"
        ),
        source: RasterSource = Depends(source_dependency),  # noqa: B008  not a global name
        env: dict[str, Any] = Depends(dependencies.environment),  # noqa: B008
    ) -> Response:
        """The same pixels as those of the download, written by a job, for a file that is too large for an answer. The
        answer tells where to follow it."""
        check_crs(bbox_crs, "bbox-crs")
        crs, box = CRS.from_user_input(bbox_crs), _box(bbox)
        order = await asyncio.to_thread(_order, source, box, crs, env, {}, MOST_ORDERED_SAMPLES)
        return await extracts.order(request, source.served, order, f"{source.served.title}.tif", COG_TYPE)


def _box(text: str) -> Box:
    try:
        west, south, east, north = (float(number) for number in text.split(","))
    except ValueError:
        raise _wrong(f"must have four numbers, not {text[:80]!r}") from None
    if not all(map(math.isfinite, (west, south, east, north))) or not (west < east and south < north):
        raise _wrong("must be west, south, east, north, with the smaller number first")
    return west, south, east, north


def _order(
    source: RasterSource, box: Box, crs: CRS, env: dict[str, Any], options: dict[str, Any], most_samples: int
) -> PixelsOrder:
    if source.series:
        raise ConflictError("a series has no pixels of its own", remedy="name a scene as {asset_id}.{scene_id}")
    with rasterio.Env(**env), open_reader(source) as reader:
        bounds = transform_bounds(crs, reader.crs, *box, densify_pts=21) if crs != reader.crs else box
        window = _window(reader.transform, reader.width, reader.height, bounds)
        if isinstance(reader, MosaicReader):
            bands = len(reader.input.types)
            most_files = MOST_TILES if most_samples == MOST_SAMPLES else MOST_ORDERED_FILES
            vrt = reader.input.virtual(reader.input.touching(bounds, reader.crs, most_files)).decode()
        else:
            bands, vrt = reader.dataset.count, None
    if window[2] * window[3] * bands > most_samples:
        ordered = most_samples > MOST_SAMPLES
        raise DownloadTooLarge(
            f"the part has {window[2]:,} x {window[3]:,} pixels of {bands} bands, which is more than one"
            f" {'extract' if ordered else 'download'} may",
            remedy=WHOLE if ordered else f"choose a smaller box; or {ORDER_IT}",
        )
    path = None if vrt else source.path
    return PixelsOrder(path=path, vrt=vrt, options=options, window=window, most_bytes=MOST_BYTES)


def _window(transform: Affine, width: int, height: int, bounds: Any) -> tuple[int, int, int, int]:
    """Return first column, first row, width and height of the pixels that the bounds touch."""
    inverse = ~transform
    corners = [inverse @ (x, y) for x in (bounds[0], bounds[2]) for y in (bounds[1], bounds[3])]
    if not all(math.isfinite(number) for corner in corners for number in corner):
        raise _wrong("lies outside the reference system of the raster")
    columns, rows = [corner[0] for corner in corners], [corner[1] for corner in corners]
    left, right = max(math.floor(min(columns) + 1e-6), 0), min(math.ceil(max(columns) - 1e-6), width)
    top, bottom = max(math.floor(min(rows) + 1e-6), 0), min(math.ceil(max(rows) - 1e-6), height)
    if left >= right or top >= bottom:
        raise _wrong("does not touch the raster")
    return left, top, right - left, bottom - top


def _wrong(message: str) -> InputError:
    problem = Problem("bbox", message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
