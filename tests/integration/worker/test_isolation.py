"""A handler that is not async can do what it wants to its process: one attempt ends, the worker goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from geomill.domain.states import JobStatus
from geomill.sdk.registry import load_handlers
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.test_logs import lines
from tests.integration.worker.waiting import gone, until


async def test_where_handlers_run(bench: TaskBench) -> None:
    bench.worker(processes=1)
    await bench.try_out("pid")
    output = (await bench.only_attempt())["output"]
    assert output["pid"] != os.getpid()
    assert output["parent"] == os.getpid()
    for handler, here in (("inline_pid", True), ("isolated_async", False)):
        job = await bench.try_out(handler)
        assert job.result_data is not None
        assert (job.result_data["work"]["pid"] == os.getpid()) is here
    assert (await bench.try_out("own_loop")).result_data == {"work": {"slept": True}}


@pytest.mark.parametrize(
    ("how", "manner"),
    [("exit", "ended with exit code 7"), ("SIGSEGV", "was killed by SIGSEGV"), ("SIGKILL", "was killed by SIGKILL")],
)
async def test_a_crash_ends_one_attempt_and_says_how(bench: TaskBench, how: str, manner: str) -> None:
    worker = bench.worker(processes=1)
    job = await bench.try_out("die", {"how": how})
    assert job.status is JobStatus.FAILED
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("crashed", True)
    assert manner in attempt["error_message"]
    reference = attempt["error_message"].rpartition(" ")[2]
    log = "\n".join(text for _, text in await lines(bench, job.job_id))
    assert f"reference {reference}" in log
    assert "about to go" in log
    assert "printed before the end" in log
    for text in ("about to go", "printed before the end", "handlers.py"):
        assert text not in attempt["error_message"]
    if how == "SIGSEGV":
        assert "handlers.py" in log  # the Python traceback of the crash
    assert (await bench.try_out("pid")).status is JobStatus.COMPLETED
    assert worker.instance_id in bench.running


async def test_leaving_by_the_door_is_an_ordinary_failure(bench: TaskBench) -> None:
    bench.worker(processes=1)
    await bench.try_out("die", {"how": "leave"})
    assert (await bench.only_attempt())["error_code"] == "handler_error"


async def test_a_checkpoint_said_before_a_crash_is_kept_and_the_next_attempt_resumes(bench: TaskBench) -> None:
    bench.worker(processes=1, poll_seconds=0.1)
    job = await bench.try_out("die_once", retry={"max_attempts": 2, "backoff": "none"})
    assert job.result_data == {"work": {"resumed_from": "half", "data": {"done": 5}}}
    assert [row["error_code"] for row in await bench.attempts()] == ["crashed", None]


async def test_too_much_memory(bench: TaskBench) -> None:
    bench.worker(processes=1, memory_mb=150)
    await bench.try_out("eat", {"megabytes": 1500})
    attempt = await bench.only_attempt()
    assert attempt["error_code"] == "memory"
    assert "more than the limit of 150 MB" in attempt["error_message"]


async def test_more_memory_at_once_than_there_may_ever_be(bench: TaskBench) -> None:
    bench.worker(processes=1, memory_mb=150)
    await bench.try_out("gulp", {"megabytes": 4000})
    attempt = await bench.only_attempt()
    assert attempt["error_code"] == "memory"
    assert "MemoryError" in attempt["error_message"]


async def test_address_space_is_not_memory(bench: TaskBench) -> None:
    bench.worker(processes=1, memory_mb=150)
    assert (await bench.try_out("reserve", {"megabytes": 20_000})).status is JobStatus.COMPLETED


async def test_a_timeout_kills_the_child_and_what_it_started(bench: TaskBench, tmp_path: Path) -> None:
    bench.worker(processes=1)
    await bench.try_out("hang", {"place": str(tmp_path / "pids")}, timeout_seconds=0.5)
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("timeout", True)
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        await until(lambda pid=pid: gone(pid))


async def test_a_timeout_cancels_what_runs_inline(bench: TaskBench) -> None:
    bench.worker()
    await bench.try_out("hang_inline", timeout_seconds=0.3)
    assert (await bench.only_attempt())["error_code"] == "timeout"


@pytest.mark.parametrize("handler", ["impatient", "impatient_inline"])
async def test_a_handler_may_limit_its_own_time_and_is_not_tried_again(bench: TaskBench, handler: str) -> None:
    bench.worker(processes=1)
    await bench.try_out(handler, timeout_seconds=50, retry={"max_attempts": 3})
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("too_slow", False)
    assert attempt["error_message"] == "the file takes too long"


async def test_a_limit_ends_with_its_block(bench: TaskBench) -> None:
    bench.worker(processes=1)
    job = await bench.try_out("patient", timeout_seconds=50)
    assert job.status is JobStatus.COMPLETED


@pytest.mark.parametrize("handler", ["hang", "hang_inline"])
async def test_silence_is_not_progress(bench: TaskBench, handler: str) -> None:
    bench.worker(processes=1)
    await bench.try_out(handler, timeout_seconds=50, progress_timeout_seconds=0.6)
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("progress_timeout", True)


async def test_who_reports_progress_is_not_silent(bench: TaskBench) -> None:
    bench.worker()
    job = await bench.try_out("nap", {"seconds": 1.2}, timeout_seconds=50, progress_timeout_seconds=0.6)
    assert job.status is JobStatus.COMPLETED


async def test_a_child_is_used_again_until_it_is_worn_or_its_task_failed(bench: TaskBench) -> None:
    worker = bench.worker(processes=1, concurrency=1, tasks_per_process=3)
    pids = []
    for _ in range(4):
        job = await bench.try_out("pid")
        pids.append(job.result_data["work"]["pid"])
    assert pids[0] == pids[1] == pids[2] != pids[3]
    await bench.try_out("raise_inside")
    await until(lambda: worker._children.pids and pids[3] not in worker._children.pids)
    assert gone(pids[0])


async def test_children_are_ready_before_they_are_needed_and_no_more_than_that(bench: TaskBench) -> None:
    worker = bench.worker(processes=2, concurrency=8)
    await until(lambda: len(worker._children._idle) == 2)
    begun = time.monotonic()
    await bench.try_out("pid")
    assert time.monotonic() - begun < 1
    assert len(worker._children.pids) == 2


async def test_a_worker_without_isolated_handlers_has_no_children(bench: TaskBench) -> None:
    bench.registry = load_handlers()
    worker = bench.worker(processes=4)
    await bench.try_out("hello_world")
    assert worker._children.pids == set()


async def test_a_flood_of_progress_does_not_drown_the_worker(bench: TaskBench) -> None:
    bench.worker(processes=1)
    begun = time.monotonic()
    assert (await bench.try_out("fast_talker")).status is JobStatus.COMPLETED
    assert time.monotonic() - begun < 5
