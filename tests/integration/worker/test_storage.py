"""Handlers have the storage, in the worker's loop and in processes of their own."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from geomill.domain.states import JobStatus
from geomill.sdk.testing import folder_storage
from tests.integration.worker.conftest import TaskBench


async def test_both_kinds_of_handlers_use_the_same_zones(bench: TaskBench, tmp_path: Path) -> None:
    bench.storage = folder_storage(tmp_path)
    bench.worker(processes=1)
    job = await bench.try_out("stores", {"text": "hello"})
    assert job.result_data is not None
    assert job.result_data["work"]["sha256"] == sha256(b"hello").hexdigest()
    assert job.result_data["work"]["pid"] != os.getpid()
    job = await bench.try_out("stores_async")
    assert job.result_data == {"work": {"text": "hello", "pid": os.getpid()}}


async def test_what_the_storage_says_becomes_the_attempt_s_error(bench: TaskBench, tmp_path: Path) -> None:
    bench.storage = folder_storage(tmp_path)
    bench.worker(processes=1)
    job = await bench.try_out("misses", retry={"max_attempts": 3, "backoff": "none"})
    assert job.status is JobStatus.FAILED
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("not_found", False)
    assert "there is no object 'silver/results/from-a-handler.txt'" in attempt["error_message"]


async def test_without_storage_it_says_so(bench: TaskBench) -> None:
    bench.worker(processes=1)
    await bench.try_out("stores", {"text": "hello"})
    assert "the zone 'silver' has no location here" in (await bench.only_attempt())["error_message"]
