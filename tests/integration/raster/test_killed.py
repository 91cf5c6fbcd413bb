"""Kills in the middle of the tiles: what was finished is not done again, and the result is the same to the byte."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from pathlib import Path

import pytest

from geomill.domain.states import JobStatus
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.sdk import Storage
from geomill.sdk.testing import run_handler
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster import sources
from tests.integration.raster.checks import sizes
from tests.integration.raster.sources import SyntheticRaster
from tests.integration.raster.steps import ok, tiles, tiling

INPUTS = {"container_name": sources.CONTAINER, "file_name": "a.tif", "tile_size": 512, "target_crs": "source"}


def digests(storage: Storage, prefix: str) -> dict[str, str]:
    top = Path(storage.recipe.zones["silver"]) / "cogs" / prefix
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in top.glob("tiles/*.tif")}


def written(storage: Storage, prefix: str) -> dict[str, int]:
    top = Path(storage.recipe.zones["silver"]) / "cogs" / prefix
    return {path.name: path.stat().st_mtime_ns for path in top.glob("tiles/*.tif")}


@pytest.mark.slow
async def test_a_killed_process_costs_no_finished_tile(platform: EnginePlatform, storage: Storage) -> None:
    sources.put(storage, SyntheticRaster(sources.noise((1, 7_168, 7_680), rough=0.05)))
    worker = platform.worker(concurrency=1)
    job_id = await platform.submit("process_large_raster", {**INPUTS, "blob_prefix": "killed"})
    async with asyncio.timeout(60):
        while len(early := written(storage, "killed")) < 60:  # noqa: ASYNC110  the files are another process's
            await asyncio.sleep(0.01)
    for pid in worker._children.pids:
        os.killpg(pid, signal.SIGKILL)
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED, job.error_message
    late = written(storage, "killed")
    assert len(late) == 210
    assert sum(late[name] != when for name, when in early.items()) <= 1  # the one whose checkpoint was on its way
    tiles(storage, "whole", target_crs="source")
    assert digests(storage, "killed") == digests(storage, "whole")


def test_an_attempt_goes_on_where_the_last_one_was(storage: Storage) -> None:
    sources.put(storage, sources.rgb(1_300))
    validation, scheme = tiling(storage, "a", target_crs="source")
    every = [tile for batch in scheme["batches"] for tile in batch]
    params = {"source": validation["source"], "plan": scheme["plan"], "tiles": every, "blob_prefix": "a"}
    left = iter([False] * 4 + [True] * 10)
    stopped = run_handler(process_tile_batch, params, storage=storage, cancelled=lambda: next(left))
    assert (stopped.success, stopped.ended.error_code) == (False, "cancelled")
    assert len([name for name in sizes(storage, "cogs") if name.endswith(".tif")]) == 4
    before = written(storage, "a")
    resumed = run_handler(process_tile_batch, params, storage=storage, checkpoint=stopped.checkpoints[-1], attempt=2)
    assert ok(resumed)["resumed"] == 4
    assert {name: when for name, when in written(storage, "a").items() if name in before} == before
    fresh = ok(run_handler(process_tile_batch, {**params, "blob_prefix": "b"}, storage=storage))
    assert digests(storage, "a") == digests(storage, "b")
    assert resumed.output["statistics"] == fresh["statistics"]
