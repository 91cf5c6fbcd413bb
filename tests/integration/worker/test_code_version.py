"""Every result has the code version of the handler that ran, and a retry tells when the code has changed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from geomill.sdk.code_version import code_version, source_fingerprint
from geomill.sdk.registry import handlers_in
from geomill.store.pool import Pool
from tests.integration.engine.platform import registry_of
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.handlers import inline_pid
from tests.integration.worker.test_logs import lines

AGAIN = {"max_attempts": 2, "initial_delay_seconds": 0.01}
FIXED = """
from geomill.sdk import register_handler

@register_handler("improving")
def improving(ctx):
    return {"fixed": True}
"""
BROKEN = f"""
from pathlib import Path
from geomill.sdk import HandlerError, register_handler

@register_handler("improving")
def improving(ctx):
    Path(__file__).write_text({FIXED!r})
    raise HandlerError("not yet", retryable=True)
"""


async def versions(bench: TaskBench) -> list[str | None]:
    rows = await bench.rows("SELECT handler_version FROM dagapp.dag_task_results ORDER BY attempt, reported_at")
    return [row["handler_version"] for row in rows]


async def test_worker_and_child_record_the_same_version(bench: TaskBench) -> None:
    bench.worker(processes=1)
    expected = code_version(inline_pid)
    for handler, params in (("inline_pid", {}), ("pid", {}), ("die", {"how": "exit"})):
        await bench.try_out(handler, params)
    assert await versions(bench) == [expected] * 3
    (noted,) = await bench.rows("SELECT handlers, versions FROM dagapp.dag_instance_handlers")
    assert sorted(noted["handlers"]) == sorted(noted["versions"])
    assert noted["versions"]["pid"] == expected


async def test_a_task_that_no_handler_ran_has_none(bench: TaskBench) -> None:
    bench.offer("pid")
    bench.registry = handlers_in([])
    bench.worker(handler_wait_seconds=0)
    await bench.run("pid")
    assert await versions(bench) == [None]


@pytest.fixture
async def improving(
    database: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TaskBench]:
    """A handler that fails, and corrects its file."""
    (tmp_path / "improving_handlers.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    registry = handlers_in(["improving_handlers"])
    bench = TaskBench(database, pool, registry_of(registry), registry)
    bench.orchestrator(scan_seconds=0.1)
    yield bench
    await bench.shutdown()
    del sys.modules["improving_handlers"]


async def test_a_child_that_starts_after_a_change_records_the_new_version(improving: TaskBench, tmp_path: Path) -> None:
    before = source_fingerprint([tmp_path / "improving_handlers.py"])
    improving.worker()
    job = await improving.try_out("improving", retry=AGAIN)
    assert job.result_data == {"work": {"fixed": True}}
    now = source_fingerprint([tmp_path / "improving_handlers.py"])
    assert before != now
    assert await versions(improving) == [before, now]
    expected = f"the code of this handler has changed since the previous attempt: {before} before, {now} now"
    assert ("WARNING", expected) in await lines(improving, job.job_id)
    importlib.invalidate_caches()


async def test_a_retry_with_the_same_code_says_nothing(bench: TaskBench) -> None:
    bench.worker(processes=1)
    job = await bench.try_out("die", {"how": "leave"}, retry=AGAIN)
    assert await versions(bench) == [code_version(inline_pid)] * 2
    assert not [text for _, text in await lines(bench, job.job_id) if "has changed" in text]
