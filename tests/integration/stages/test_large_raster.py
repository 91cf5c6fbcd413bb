"""`process_large_raster` in stages makes what the workflow of the same name makes, in the layout of the stage model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import morecantile
import numpy as np
import pytest
from cogeo_mosaic.mosaic import MosaicJSON
from rasterio.io import MemoryFile

from geomill.domain.access.principal import Role
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.stage_job import StageStatus
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import folder_storage
from geomill.stages.registry import load_stage_jobs
from geomill.stages.status import StageJobView
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.raster import sources
from tests.integration.raster.checks import check_cog, check_stac, read, sizes
from tests.integration.serve.zone import House
from tests.integration.stages.conftest import StagePlatform

WEB = morecantile.tms.get("WebMercatorQuad")
WANTED = {"blob_name": "a.tif", "container_name": sources.CONTAINER, "tile_size": 512, "datetime": "2024-04-17"}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path)


@pytest.fixture
async def platform(database: str, pool: Pool, storage: Storage) -> AsyncIterator[StagePlatform]:
    registry, job_types = load_handlers(), load_stage_jobs()
    files = WorkflowRegistry.load([], handlers=registry.info, queues=TASK_QUEUES)
    workflow_registry = job_types.join(files, handlers=registry.info, queues=TASK_QUEUES)
    stage_platform = StagePlatform(database, pool, workflow_registry, registry, storage, job_types=job_types)
    stage_platform.orchestrator()
    stage_platform.worker(concurrency=2)
    yield stage_platform
    await stage_platform.shutdown()


def hashes(files: list[dict[str, Any]], role: str) -> list[str]:
    return sorted(file["sha256"] for file in files if file["role"] == role)


def silver(path: str) -> ObjectName:
    return ObjectName(Zone.SILVER, "cogs", path)


def check_layout(view: StageJobView, storage: Storage) -> None:
    job8 = view.latest.run.job_id[:8]
    tiles = {file["path"] for file in view.stage_results["stage_4"]["files"] if file["role"] == "tile"}
    assert set(sizes(storage, "cogs")) >= {
        "tiling_schemes/a_scheme.json",
        f"mosaics/{job8}_mosaic.json",
        f"mosaics/{job8}/preview.webp",
        f"mosaics/{job8}/thumbnail.png",
        f"stac/{job8}_item.json",
        *tiles,
    }
    assert all(path.startswith("cogs/a/a_tile_") and path.endswith("_cog.tif") for path in tiles)
    mosaic = MosaicJSON.model_validate_json(read(storage, silver(f"mosaics/{job8}_mosaic.json")))
    assert {path for paths in mosaic.tiles.values() for path in paths} == {f"../{path}" for path in tiles}
    assert view.stage_results["stage_4"]["quadkey_count"] == len(mosaic.tiles)
    item = check_stac(storage, silver(f"stac/{job8}_item.json"))
    assert item["assets"]["mosaic"]["href"] == f"../mosaics/{job8}_mosaic.json"
    assert item["properties"]["datetime"] == "2024-04-17T00:00:00Z"
    check_scheme(json.loads(read(storage, silver("tiling_schemes/a_scheme.json"))))


def check_scheme(scheme: dict[str, Any]) -> None:
    """Our names and those of the earlier system."""
    metadata, tile = scheme["metadata"], scheme["features"][0]["properties"]
    assert metadata["source"] == metadata["source_blob"] == "a.tif"
    assert (metadata["target_crs"], metadata["raster_metadata"]["band_count"]) == ("EPSG:4326", 3)
    assert metadata["grid_cols"] * metadata["grid_rows"] >= metadata["total_tiles"] == len(scheme["features"])
    window = tile["pixel_window"]
    assert [window[name] for name in ("col_off", "row_off", "width", "height")] == tile["source_window"]
    assert (tile["grid_col"], tile["grid_row"], tile["bounds_4326"]) == (0, 0, tile["bounds"])


async def test_the_same_outputs_as_the_workflow(platform: StagePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(1200))
    view = await platform.complete("process_large_raster", WANTED)
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    inputs = {"container_name": sources.CONTAINER, "file_name": "a.tif", "tile_size": 512, "datetime": "2024-04-17"}
    job = await platform.run("process_large_raster", {**inputs, "target_crs": "EPSG:4326"})
    workflow_output, stage_output = job.result_data or {}, view.stage_results["stage_4"]
    for role in ("tile", "overview", "thumbnail"):
        assert hashes(stage_output["files"], role) == hashes(workflow_output["files"], role)
    for field in ("bbox", "statistics"):
        assert stage_output[field] == workflow_output[field]
    assert (
        stage_output["total_cogs"]
        == workflow_output["tile_count"]
        == view.stages[2].total - view.stage_results["stage_3"]["empty_tiles"]
    )
    first = view.stage_results["stage_1"]
    assert first["source_file_hash"] == workflow_output["source_file_hash"]
    assert (first["strategy"], first["warnings"]) == (workflow_output["strategy"], workflow_output["warnings"])
    assert first["raster_metadata"] == {"band_count": 3, "data_type": "uint8", "detected_type": "rgb"}
    assert [stage.total for stage in view.stages][:2] == [1, 0]
    check_layout(view, storage)
    for file in stage_output["files"]:
        if file["role"] == "tile":
            check_cog(storage, silver(file["path"]))


async def test_statistics_of_large_tiles_are_of_the_wanted_overview(platform: StagePlatform, storage: Storage) -> None:
    """One pixel that is not in the overview of level 2, as would be usual, and in that of level 0, which is the raster
    itself."""
    data = np.full((1, 1100, 1100), 7, "uint8")
    data[0, 1, 1] = 251
    sources.put(storage, sources.SyntheticRaster(data))
    parameters = {**WANTED, "tile_size": 2048, "target_crs": "source", "overview_level": 0}
    view = await platform.complete("process_large_raster", parameters)
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert view.stage_results["stage_4"]["statistics"][0]["maximum"] == 251


async def test_its_tiles_are_served(platform: StagePlatform, storage: Storage, database: str) -> None:
    """The job's id is enough to read its tiles inside: nobody has published them."""
    sources.put(storage, sources.rgb(900))
    view = await platform.complete("process_large_raster", {**WANTED, "output_folder": "some/where"})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    output = view.stage_results["stage_4"]
    job_id = view.latest.run.job_id
    assert output["tile_server_url"] == f"/raster/jobs/{job_id}/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}"
    async with House.open(database, storage) as house:
        reader, partner = await house.key(Role.READER), await house.key(Role.SUBMITTER, platform_id="ddh")
        start = f"/raster/jobs/{job_id}"
        tilejson = await house.client.get(f"{start}/WebMercatorQuad/tilejson.json", headers=reader)
        assert tilejson.status_code == 200, tilejson.text
        assert tilejson.json()["bounds"] == pytest.approx(output["bbox"], abs=0.01)
        assert f"{start}/tiles/WebMercatorQuad/" in tilejson.json()["tiles"][0]
        west, south, east, north = output["bbox"]
        tile = WEB.tile((west + east) / 2, (south + north) / 2, tilejson.json()["maxzoom"])
        url = output["tile_server_url"].format(z=tile.z, x=tile.x, y=tile.y)
        answer = await house.client.get(f"{url}.tif", headers=reader)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "private, no-cache"), answer.text
        with MemoryFile(answer.content) as file, file.open() as picture:
            pixels = picture.read()
        assert pixels.shape[1:] == (256, 256)
        assert pixels[:3].std() > 5  # there is something in it
        capabilities = await house.client.get(f"{start}/WMTSCapabilities.xml", headers=reader)
        assert f"{start}/tiles" in capabilities.text
        for headers in ({}, partner):
            assert (await house.client.get(url, headers=headers)).status_code == 404
        missing = await house.client.get(f"/raster/jobs/{'0' * 64}/info", headers=reader)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_a_source_that_is_cut_first(platform: StagePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(900))
    parameters = {**WANTED, "extract": "always", "band_names": ["Red", "Green", "Blue"], "output_folder": "projects/x"}
    view = await platform.complete("process_large_raster", parameters)
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    job_id = view.latest.run.job_id
    pieces = sizes(storage, "intermediates")
    assert len(pieces) == view.stage_results["stage_2"]["tiles_extracted"] == view.stages[2].total
    assert view.stage_results["stage_2"]["extraction_time_seconds"] > 0
    assert all(path.startswith(f"{job_id[:8]}/tiles/") for path in pieces)
    item = check_stac(storage, silver(f"projects/x/stac/{job_id[:8]}_item.json"))
    assert [band["name"] for band in item["assets"]["mosaic"]["bands"]] == ["Red", "Green", "Blue"]


async def test_a_source_that_is_not_there_fails_its_first_stage(platform: StagePlatform) -> None:
    view = await platform.complete("process_large_raster", {**WANTED, "blob_name": "nowhere.tif"})
    assert (view.latest.status, view.stage) == (StageStatus.FAILED, 1)
    assert "nowhere.tif" in (view.latest.error or "")
