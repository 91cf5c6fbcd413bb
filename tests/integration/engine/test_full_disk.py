"""A disk that is full for a while costs a job time, and nothing else."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import JobStatus
from geomill.storage import Storage, StorageRecipe
from tests.integration.engine.conftest import MakePlatform

PUBLISH = """
workflow_id: publish
name: Publish
nodes:
  START: {type: start, next: copy}
  copy:
    type: task
    handler: blob.publish_file
    params: {container_name: uploads, file_name: a.bin, blob_prefix: a/_r1}
    next: END
  END: {type: end}
"""
SIZE = 1_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "silver"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=False).returncode:
        pytest.skip("this system lets nobody mount a disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
async def test_the_default_backoff_outlasts_a_full_zone(make_platform: MakePlatform, small_disk: Path) -> None:
    platform = make_platform(PUBLISH)
    platform.storage = Storage(StorageRecipe.in_folder(small_disk.parent))
    await platform.storage.prepare()
    await platform.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.bin"), bytes(SIZE))
    with contextlib.suppress(OSError), (small_disk / "filler").open("wb") as filler:
        while True:
            filler.write(bytes(10_000))
            filler.flush()
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("publish")
    failed = "SELECT error_code FROM dagapp.dag_task_results WHERE status = 'failed' AND attempt = 3"
    (third,) = await platform.rows_soon(failed)  # more than a failure of its own would be allowed
    assert third["error_code"] in ("storage_unavailable", "no_space")
    (small_disk / "filler").unlink()
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED
    (node,) = await platform.rows("SELECT attempt FROM dagapp.dag_node_states WHERE node_id = 'copy'")
    assert node["attempt"] > 3
