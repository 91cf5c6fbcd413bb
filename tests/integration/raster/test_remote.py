"""The same steps with sources and outputs in Azure Blob and S3: real servers, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import rasterio
from rasterio.io import MemoryFile

from geomill.datasets.intermediates import mounted
from geomill.domain.states import JobStatus
from geomill.handlers.raster.blob_to_mount import blob_to_mount
from geomill.handlers.raster.create_preview import create_preview
from geomill.handlers.raster.extract_tiles import extract_tiles
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.handlers.raster.validate import validate
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import run_handler
from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library
from tests.integration.raster import sources
from tests.integration.raster.steps import cog, ok, tiling, validated
from tests.integration.storage.conftest import azure_recipe, s3_recipe
from tests.integration.storage.identity import identity_account
from tests.integration.storage.servers import azurite, make_bucket, make_container, moto

SOURCE = ObjectName(Zone.BRONZE, sources.CONTAINER, "a.tif")


@pytest.fixture(scope="module", params=["azure", "azure-identity", "s3"])
def remote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder, prefix = tmp_path_factory.mktemp("server"), f"{uuid4().hex[:8]}/"
    if request.param == "s3":
        with moto(folder) as endpoint:
            make_bucket(endpoint, "geo-data")
            yield Storage(s3_recipe(endpoint, prefix))
        return
    if request.param == "azure-identity":
        with identity_account(folder, (sources.CONTAINER, "cogs", "intermediates"), prefix) as account:
            yield account.storage
        return
    with azurite(folder) as endpoint:
        for container in (sources.CONTAINER, "cogs", "intermediates"):
            make_container(endpoint, container)
        yield Storage(azure_recipe(endpoint, prefix))


def test_a_tiled_source_is_read_where_it_lies(remote: Storage) -> None:
    raster = sources.rgb(300)
    remote.sync.put_bytes(SOURCE, raster.encode())
    validation = ok(run_handler(validate, {"container_name": sources.CONTAINER, "file_name": "a.tif"}, storage=remote))
    assert len(validation["source_file_hash"]) == 64
    made_cog = cog(remote, target_crs="source")
    with (
        MemoryFile(remote.sync.read(ObjectName.parse("silver/" + made_cog["blob_path"]))) as memory,
        memory.open() as dataset,
    ):
        np.testing.assert_array_equal(dataset.read(), raster.data)
    params = {"plan": made_cog["plan"], "parts": made_cog["parts"], "blob_prefix": "one"}
    assert len(ok(run_handler(create_preview, params, storage=remote))["files"]) == 2


def test_a_striped_source_is_copied_and_cut_first(remote: Storage) -> None:
    raster = sources.dem(700, options={"compress": "deflate"})
    remote.sync.put_bytes(SOURCE, raster.encode())
    validation, scheme = tiling(remote, "cut", target_crs="source")
    assert scheme["strategy"] == "two_pass"
    assert "remote" in scheme["strategy_reason"]
    params = {"source": validation["source"], "plan": scheme["plan"], "batches": scheme["batches"]}
    pieces = ok(run_handler(extract_tiles, params, storage=remote))
    assert not mounted("test-job", "a.tif").exists()
    parts = []
    for batch in scheme["batches"]:
        params = {"source": validation["source"], "plan": scheme["plan"], "tiles": batch, "blob_prefix": "cut"}
        params["intermediates"] = pieces["intermediates"]
        parts += ok(run_handler(process_tile_batch, params, storage=remote))["parts"]
    assert len(parts) == 4
    pixels = np.zeros_like(raster.data)
    for part in parts:
        window = part["window"]
        name = ObjectName(Zone.SILVER, part["file"]["container"], part["file"]["path"])
        place = (
            slice(window["row"], window["row"] + window["height"]),
            slice(window["column"], window["column"] + window["width"]),
        )
        with MemoryFile(remote.sync.read(name)) as memory, memory.open() as tile:
            pixels[:, *place] = tile.read()
    np.testing.assert_array_equal(pixels, raster.data)


def test_a_source_can_be_copied_to_this_machine(remote: Storage) -> None:
    raster = sources.dem(300)
    remote.sync.put_bytes(SOURCE, raster.encode())
    output = ok(run_handler(blob_to_mount, {"source": validated(remote)["source"]}, storage=remote))
    with rasterio.open(output["path"]) as copy:
        np.testing.assert_array_equal(copy.read(), raster.data)


def test_a_source_that_was_replaced_is_not_read_from_memory(remote: Storage) -> None:
    """GDAL remembers remote files by name, and a process runs many tasks."""
    for side in (200, 260):
        remote.sync.put_bytes(SOURCE, sources.dem(side).encode())
        assert validated(remote)["facts"]["width"] == side


async def test_tasks_in_processes_of_their_own_have_an_identity_and_no_key(
    database: str, pool: Pool, tmp_path: Path
) -> None:
    with identity_account(tmp_path, (sources.CONTAINER, "cogs", "intermediates")) as account:
        await account.storage.put_bytes(SOURCE, sources.rgb(300).encode())
        asked = len(account.endpoint.requests)
        platform = EnginePlatform(database, pool, library(), handlers_of(), account.storage)
        platform.orchestrator()
        platform.worker(concurrency=2)
        job = await platform.run("raster_processing", {"container_name": sources.CONTAINER, "file_name": "a.tif"})
        await platform.shutdown()
        assert job.status is JobStatus.COMPLETED, job.error_message
        place = ObjectName.parse(f"silver/{(job.result_data or {})['blob_path']}")
        assert (await account.storage.stat(place)).size > 0
        assert len(account.endpoint.requests) > asked, "the processes have asked for tokens themselves"
