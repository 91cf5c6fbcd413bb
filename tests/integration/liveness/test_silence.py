"""A process that is frozen: others go on within half a minute, and no task runs in two places."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.integration.liveness.stage import LivenessStage, within

pytestmark = pytest.mark.slow
THRESHOLD_SECONDS, LOOK_SECONDS = 25.0, 5.0


async def test_a_frozen_orchestrator_holds_its_jobs_for_half_a_minute_at_most(stage: LivenessStage) -> None:
    first = stage.start("orchestrator")
    stage.start("worker")
    await stage.ready(2)
    (job_id,) = await stage.submit("nap", "n", seconds=3)
    await stage.until_begun(1)
    stage.start("orchestrator")
    await stage.ready(3)
    stage.freeze(first)
    frozen = time.monotonic()
    ended = await stage.ended([job_id])
    assert time.monotonic() - frozen < THRESHOLD_SECONDS + within(LOOK_SECONDS)
    stage.thaw(first)
    assert ended[job_id]["status"] == "completed"
    assert stage.counts("begun") == {"n": 1}


async def test_a_frozen_worker_and_its_children_stop_before_others_begin(stage: LivenessStage) -> None:
    stage.start("orchestrator")
    first = stage.start("worker")
    await stage.ready(2)
    await stage.submit("nap", "n", seconds=120)
    await stage.submit("nap_aside", "a", seconds=120)
    await stage.until_begun(2)
    await stage.until_rows("SELECT 1 FROM dagapp.dag_node_states WHERE status = 'running' HAVING count(*) = 2")
    before = {line.key: line.pid for line in stage.lines("begun")}
    stage.start("worker")
    await stage.ready(3)
    stage.freeze(first)
    frozen = time.monotonic()
    await stage.until(lambda: len(stage.lines("begun")) == 4)
    assert time.monotonic() - frozen < THRESHOLD_SECONDS + within(LOOK_SECONDS)
    begun_again = {line.key: line.at for line in stage.lines("begun")[2:]}
    assert set(begun_again) == {"n", "a"}
    stage.thaw(first)
    await asyncio.sleep(2)
    late = {
        key: sum(line.pid == pid and line.key == key and line.at >= begun_again[key] for line in stage.lines())
        for key, pid in before.items()
    }
    assert late["a"] == 0, "the child still ran when another worker had begun its task"
    assert late["n"] <= 1, "a coroutine takes the step that was due when the worker froze, and no other"
    assert stage.counts("begun") == {"n": 2, "a": 2}
    assert await stage.rows("SELECT max(losses) AS most FROM dagapp.dag_queue") == [{"most": 0}]  # it came back
