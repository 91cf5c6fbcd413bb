"""Rasters that lie in Azure Blob and S3, files and mosaics: real servers, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from geomill.handlers.raster.create_mosaic import create_mosaic
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import run_handler
from tests.integration.raster import sources, steps
from tests.integration.serve.test_rasters import image, tile_at
from tests.integration.serve.zone import House
from tests.integration.storage.conftest import azure_recipe, s3_recipe
from tests.integration.storage.identity import identity_account
from tests.integration.storage.servers import azurite, make_bucket, make_container, moto

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")


@pytest.fixture(params=["azure", "azure-identity", "s3"])
def remote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder, prefix = tmp_path_factory.mktemp("server"), f"{uuid4().hex[:8]}/"
    if request.param == "s3":
        with moto(folder) as endpoint:
            make_bucket(endpoint, "geo-data")
            yield Storage(s3_recipe(endpoint, prefix))
        return
    if request.param == "azure-identity":
        with identity_account(folder, (sources.CONTAINER, "cogs"), prefix) as account:
            yield account.storage
        return
    with azurite(folder) as endpoint:
        for container in (sources.CONTAINER, "cogs"):
            make_container(endpoint, container)
        yield Storage(azure_recipe(endpoint, prefix))


def mosaic_of(storage: Storage) -> dict[str, Any]:
    validation, scheme = steps.tiling(storage, "many", 512, target_crs="EPSG:3857")
    common = {"plan": scheme["plan"], "blob_prefix": "many"}
    results = [
        steps.ok(
            run_handler(process_tile_batch, {**common, "source": validation["source"], "tiles": batch}, storage=storage)
        )
        for batch in scheme["batches"]
    ]
    return steps.ok(run_handler(create_mosaic, {**common, "results": results, "name": "many"}, storage=storage))


@pytest.fixture
def published(remote: Storage) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same raster as one file and as a mosaic."""
    raster = sources.SyntheticRaster(sources.noise((1, 700, 700), "int16", 0, 5000), nodata=-1)
    remote.sync.put_bytes(ObjectName(Zone.BRONZE, sources.CONTAINER, "a.tif"), raster.encode())
    return steps.cog(remote, "one", target_crs="EPSG:3857"), mosaic_of(remote)


async def test_files_and_mosaics_are_read_where_they_lie(
    database: str, remote: Storage, published: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    async with House.open(database, remote) as house:
        tile = tile_at(14)
        tiles = []
        for name, output in zip(("one", "many"), published, strict=True):
            outputs = {"raster_type": "continuous", "statistics": output["statistics"]}
            asset_id = await house.publish(name, blob_path=output["blob_path"], outputs=outputs)
            start = f"/raster/assets/{asset_id}"
            assert (await house.client.get(f"{start}/info")).json()["dtype"] == "int16"
            tiles.append(image(await house.client.get(f"{start}/tiles/WebMercatorQuad/14/{tile.x}/{tile.y}.tif")))
        assert (tiles[0][1] > 0).any()
        assert np.mean(tiles[0] == tiles[1]) > 0.99
