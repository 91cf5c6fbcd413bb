"""Runs sources that are not plain GeoTIFFs through the first steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import rasterio

from geomill.handlers.raster.create_cog import create_cog
from geomill.handlers.raster.validate import validate
from geomill.sdk import ObjectName, Storage
from geomill.sdk.testing import HandlerRun, run_handler
from tests.integration.raster import sources, steps


def validated(storage: Storage, file_name: str, **options: Any) -> HandlerRun:
    params = {"container_name": sources.CONTAINER, "file_name": file_name, "hash_source": False, **options}
    return run_handler(validate, params, storage=storage)


def published(storage: Storage, file_name: str, **options: Any) -> tuple[dict[str, Any], np.ndarray, Any]:
    validation = steps.ok(validated(storage, file_name, **options))
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "odd"}
    cog = steps.ok(run_handler(create_cog, params, storage=storage))
    with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + cog["blob_path"]))) as dataset:
        return validation, dataset.read(masked=True), dataset.profile
