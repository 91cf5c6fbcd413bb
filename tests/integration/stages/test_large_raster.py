"""`process_large_raster` in stages makes what the workflow of the same name makes, in the layout of the stage model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cogeo_mosaic.mosaic import MosaicJSON

from geomill.domain.message import TASK_QUEUES
from geomill.domain.stage_job import StageStatus
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import folder_storage
from geomill.stages.registry import load_stage_jobs
from geomill.stages.status import StageJobView
from geomill.store.pool import Pool
from geomill.workflows.catalogue import WorkflowCatalogue
from tests.integration.raster import sources
from tests.integration.raster.checks import check_cog, check_stac, read, sizes
from tests.integration.stages.conftest import StagePlatform

WANTED = {"blob_name": "a.tif", "container_name": sources.CONTAINER, "tile_size": 512, "datetime": "2024-04-17"}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path)


@pytest.fixture
async def platform(database: str, pool: Pool, storage: Storage) -> AsyncIterator[StagePlatform]:
    registry, job_types = load_handlers(), load_stage_jobs()
    files = WorkflowCatalogue.load([], handlers=registry.info, queues=TASK_QUEUES)
    catalogue = job_types.join(files, handlers=registry.info, queues=TASK_QUEUES)
    made = StagePlatform(database, pool, catalogue, registry, storage, job_types=job_types)
    made.orchestrator()
    made.worker(concurrency=2)
    yield made
    await made.shutdown()


def hashes(files: list[dict[str, Any]], role: str) -> list[str]:
    return sorted(file["sha256"] for file in files if file["role"] == role)


def silver(path: str) -> ObjectName:
    return ObjectName(Zone.SILVER, "cogs", path)


def check_layout(found: StageJobView, storage: Storage) -> None:
    job8 = found.latest.run.job_id[:8]
    tiles = {file["path"] for file in found.stage_results["stage_4"]["files"] if file["role"] == "tile"}
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
    item = check_stac(storage, silver(f"stac/{job8}_item.json"))
    assert item["assets"]["mosaic"]["href"] == f"../mosaics/{job8}_mosaic.json"
    assert item["properties"]["datetime"] == "2024-04-17T00:00:00Z"
    assert json.loads(read(storage, silver("tiling_schemes/a_scheme.json")))["metadata"]["source"] == "a.tif"


async def test_the_same_outputs_as_the_workflow(platform: StagePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(1200))
    found = await platform.complete("process_large_raster", WANTED)
    assert found.latest.status is StageStatus.COMPLETED, found.latest.error
    inputs = {"container_name": sources.CONTAINER, "file_name": "a.tif", "tile_size": 512, "datetime": "2024-04-17"}
    job = await platform.run("process_large_raster", inputs)
    theirs, ours = job.result_data or {}, found.stage_results["stage_4"]
    for role in ("tile", "overview", "thumbnail"):
        assert hashes(ours["files"], role) == hashes(theirs["files"], role)
    for field in ("bbox", "statistics"):
        assert ours[field] == theirs[field]
    assert (
        ours["total_cogs"]
        == theirs["tile_count"]
        == found.stages[2].total - found.stage_results["stage_3"]["empty_tiles"]
    )
    first = found.stage_results["stage_1"]
    assert first["source_file_hash"] == theirs["source_file_hash"]
    assert (first["strategy"], first["warnings"]) == (theirs["strategy"], theirs["warnings"])
    assert first["raster_metadata"] == {"band_count": 3, "data_type": "uint8", "detected_type": "rgb"}
    assert [one.total for one in found.stages][:2] == [1, 0]
    check_layout(found, storage)
    for file in ours["files"]:
        if file["role"] == "tile":
            check_cog(storage, silver(file["path"]))


async def test_a_source_that_is_cut_first(platform: StagePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(900))
    wanted = {**WANTED, "extract": "always", "band_names": ["Red", "Green", "Blue"], "output_folder": "projects/x"}
    found = await platform.complete("process_large_raster", wanted)
    assert found.latest.status is StageStatus.COMPLETED, found.latest.error
    job_id = found.latest.run.job_id
    pieces = sizes(storage, "intermediates")
    assert len(pieces) == found.stage_results["stage_2"]["tiles_extracted"] == found.stages[2].total
    assert all(path.startswith(f"{job_id[:8]}/tiles/") for path in pieces)
    item = check_stac(storage, silver(f"projects/x/stac/{job_id[:8]}_item.json"))
    assert [band["name"] for band in item["assets"]["mosaic"]["bands"]] == ["Red", "Green", "Blue"]


async def test_a_source_that_is_not_there_fails_its_first_stage(platform: StagePlatform) -> None:
    found = await platform.complete("process_large_raster", {**WANTED, "blob_name": "nowhere.tif"})
    assert (found.latest.status, found.stage) == (StageStatus.FAILED, 1)
    assert "nowhere.tif" in (found.latest.error or "")
