"""TiTiler's routes for rasters by asset id."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from rasterio._err import CPLE_AppDefinedError, CPLE_IllegalArgError  # what transformations raise
from rasterio.errors import CRSError, RasterioError, WarpOperationError
from rio_tiler.errors import (
    InvalidBandName,
    InvalidColorFormat,
    InvalidExpression,
    InvalidFormat,
    MissingBands,
    PointOutsideBounds,
    RioTilerError,
    TileOutsideBounds,
)
from starlette.types import ASGIApp, Receive, Scope, Send
from titiler.core.factory import ColorMapFactory, TilerFactory, TMSFactory

from geomill import __version__
from geomill.raster.opening import StoreSession
from geomill.serve.answers import Answer, prepare
from geomill.serve.directory import Directory
from geomill.serve.downloads.desk import DownloadDesk
from geomill.serve.downloads.extracts import Extracts
from geomill.serve.pages import TEMPLATES
from geomill.serve.raster import clips, dependencies, listing, mosaic_files, wmts
from geomill.serve.raster.dependencies import RasterShelf
from geomill.serve.raster.limits import AT_ONCE
from geomill.serve.raster.maps import MapAxes
from geomill.serve.raster.mosaics import Mosaics
from geomill.serve.raster.painting import render
from geomill.serve.raster.readers import open_reader
from geomill.serve.raster.systems import strict_systems
from geomill.serve.tilejson import complete_tilejson, tilejson_fields
from geomill.storage import Storage

PREFIX = "/assets/{asset_id}"
JOBS_PREFIX = "/jobs/{job_id}"
CACHE_BYTES = 256 * 1024 * 1024
GDAL = {
    "GDAL_CACHEMAX": CACHE_BYTES,
    "GDAL_NUM_THREADS": "1",
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_INGESTED_BYTES_AT_OPEN": "65536",
}
STRICT = [Depends(strict_systems)]
REMOTE = {"VSI_CACHE": "TRUE", "VSI_CACHE_SIZE": "5000000"}
"""Cache remote reads. This is safe because a file of a revision never changes."""

NOT_THERE = "the location or image cannot be computed in the reference system of the raster"
UNREADABLE = "the raster cannot be read at the moment; see the server's log"
STATUSES: dict[type[Exception], Answer] = {
    TileOutsideBounds: (404, "outside"),
    PointOutsideBounds: (404, "outside"),
    MissingBands: (400, "invalid_input"),
    InvalidBandName: (400, "invalid_input"),
    InvalidColorFormat: (400, "invalid_input"),
    InvalidExpression: (400, "invalid_input"),
    InvalidFormat: (400, "invalid_input"),
    IndexError: (400, "invalid_input"),
    RioTilerError: (400, "invalid_input"),
    ValueError: (400, "invalid_input"),  # from numpy and rio-tiler, about the caller's parameters
    OverflowError: (400, "invalid_input", NOT_THERE),
    ZeroDivisionError: (400, "invalid_input", NOT_THERE),  # from rio-tiler, about a box without an area
    CPLE_AppDefinedError: (400, "invalid_input", NOT_THERE),
    CPLE_IllegalArgError: (400, "invalid_input", NOT_THERE),
    CRSError: (400, "invalid_input", NOT_THERE),
    WarpOperationError: (400, "invalid_input", NOT_THERE),
    RasterioError: (503, "unreadable", UNREADABLE),
}


def create_raster_app(directory: Directory, storage: Storage, extracts: Extracts) -> FastAPI:
    warnings.filterwarnings("ignore", message="Adjusting dataset latitudes")  # rio-tiler, about maps of the world
    app = FastAPI(title="geomill rasters", version=__version__, docs_url=None, redoc_url=None)
    lasting = {} if storage.uses_identity(directory.zone) else storage.gdal_options(directory.zone)
    is_folder = not lasting and not storage.uses_identity(directory.zone)
    environment = {"session": StoreSession(lasting), **GDAL, **({} if is_folder else REMOTE)}
    app.state.shelf = RasterShelf(directory, storage, Mosaics(storage), environment)
    desk = DownloadDesk()
    for prefix, source in ((PREFIX, dependencies.raster_source), (JOBS_PREFIX, dependencies.job_source)):
        tiler = _tiler(prefix, source)
        complete_tilejson(tiler.router, _described)
        orders = extracts if prefix == PREFIX else None
        app.include_router(clips.router(source, desk, orders), prefix=prefix, dependencies=STRICT)
        app.include_router(mosaic_files.router(source), prefix=prefix)
        app.include_router(wmts.router(tiler), prefix=prefix, dependencies=STRICT)
        app.include_router(tiler.router, prefix=prefix, dependencies=STRICT)
    if extracts.office:
        app.include_router(extracts.router(), prefix="/assets/{name}")
    app.include_router(listing.router)
    app.include_router(TMSFactory(templates=TEMPLATES).router)
    app.include_router(ColorMapFactory(templates=TEMPLATES).router)
    app.add_middleware(_Turnstile, at_once=AT_ONCE)
    app.add_middleware(MapAxes)
    prepare(app, STATUSES)
    return app


def _described(parameters: Mapping[str, Any]) -> dict[str, Any]:
    served = parameters["src_path"].served
    return tilejson_fields(served.title, served.metadata)


def _tiler(prefix: str, source: Any) -> TilerFactory:
    chosen: dict[str, Any] = {
        "reader": open_reader,
        "reader_dependency": dependencies.reader_options(source),
        "path_dependency": source,
        "layer_dependency": dependencies.layer_params,
        "dataset_dependency": dependencies.dataset_params,
        "tile_dependency": dependencies.tile_params,
        "stats_dependency": dependencies.statistics_params,
        "histogram_dependency": dependencies.histogram_params,
        "img_preview_dependency": dependencies.preview_params,
        "img_part_dependency": dependencies.part_params,
        "process_dependency": dependencies.process_params,
        "colormap_dependency": dependencies.color_params,
        "render_dependency": dependencies.image_params,
        "environment_dependency": dependencies.environment,
    }
    return TilerFactory(
        router=APIRouter(),
        router_prefix=prefix,
        render_func=render,
        templates=TEMPLATES,
        add_viewer=False,
        add_ogc_maps=True,
        **chosen,
    )


class _Turnstile:
    """Limits concurrent requests. Together with the size limit of images this bounds memory. Downloads have limits of
    their own: a slow reader of a large file must not take the place of pictures."""

    def __init__(self, app: ASGIApp, at_once: int) -> None:
        self._app, self._free = app, asyncio.Semaphore(at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"].endswith("/clip.tif") or "/extracts/" in scope["path"]):
            await self._app(scope, receive, send)
            return
        async with self._free:
            await self._app(scope, receive, send)
