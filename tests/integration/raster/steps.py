"""Runs the steps of the workflows one after the other, without an engine."""

from __future__ import annotations

from typing import Any

from geomill.handlers.raster.create_cog import create_cog
from geomill.handlers.raster.generate_tiling_scheme import generate_tiling_scheme
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.handlers.raster.validate import validate
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import HandlerRun, run_handler
from tests.integration.raster import sources


def ok(run: HandlerRun) -> dict[str, Any]:
    assert run.success, run.error
    output: dict[str, Any] = run.output
    return output


def validated(storage: Storage, file_name: str = "a.tif", **more: Any) -> dict[str, Any]:
    params = {"container_name": sources.CONTAINER, "file_name": file_name, "hash_source": False, **more}
    return ok(run_handler(validate, params, storage=storage))


def cog(storage: Storage, prefix: str = "one", **options: Any) -> dict[str, Any]:
    validation = validated(storage)
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": prefix}
    return ok(run_handler(create_cog, {**params, "target_crs": "EPSG:3857", **options}, storage=storage))


def tiling(
    storage: Storage, prefix: str = "many", size: int = 512, **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    validation = validated(storage)
    params = {
        "source": validation["source"],
        "facts": validation["facts"],
        "blob_prefix": prefix,
        "tile_size": size,
        "target_crs": "EPSG:4326",
        **options,
    }
    return validation, ok(run_handler(generate_tiling_scheme, params, storage=storage))


def tiles(
    storage: Storage, prefix: str = "many", size: int = 512, **options: Any
) -> tuple[dict[str, Any], list[ObjectName]]:
    """The plan, and the tiles that were made."""
    validation, scheme = tiling(storage, prefix, size, **options)
    parts = []
    for batch in scheme["batches"]:
        params = {"source": validation["source"], "plan": scheme["plan"], "tiles": batch, "blob_prefix": prefix}
        parts += ok(run_handler(process_tile_batch, params, storage=storage))["parts"]
    return scheme["plan"], [ObjectName(Zone.SILVER, part["file"]["container"], part["file"]["path"]) for part in parts]
