"""A stage of 100,000 tasks (`BENCH_STAGE_TASKS`), each with a name and a result; the job's code looks at them all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engine import _peak_megabytes as peak
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, running
from benchmarks.server import database
from geomill.domain.engine.message import TASK_QUEUES
from geomill.sdk import HandlerContext, register_handler
from geomill.sdk.registry import load_handlers
from geomill.stages import JobExecutionContext, StageController, StageDefinition, StageTask, TaskResult, stage_job
from geomill.stages import WorkflowDefinition as Stages
from geomill.stages.registry import load_stage_jobs

TASKS = int(os.environ.get("BENCH_STAGE_TASKS", "100000"))
MODULE = "benchmarks.wide"


@register_handler("bench.tile")
async def tile(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """A result as large as that of a tile."""
    return {"value": ctx.params["value"], "path": "x" * 300}


@stage_job(
    "bench_wide",
    workflow=Stages(
        job_type="bench_wide",
        stages=[
            StageDefinition(stage_number=1, stage_name="many", task_type="bench.tile"),
            StageDefinition(stage_number=2, stage_name="one", task_type="bench.tile", single=True),
        ],
    ),
)
class WideController(StageController):
    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        if stage == 1:
            return [StageTask({"value": place}, f"tile_x{place % 300}_y{place // 300}") for place in range(TASKS)]
        return [StageTask({"value": sum(result.result_data["value"] for result in context.previous_results)})]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        return {"sum": sum(result.result_data["value"] for result in results)}


def run() -> list[Figure]:
    with database() as url, running(url, measure, workers=2, modules=(MODULE,)) as measured:
        return list(measured)


async def measure(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    registry, jobs = load_handlers(roles.modules), load_stage_jobs(roles.modules)
    client.workflow_registry = jobs.join(client.workflow_registry, handlers=registry.info, queues=TASK_QUEUES)
    children: dict[int, float] = {}
    watching = asyncio.create_task(_watch(roles, children))
    seconds = await client.run("stages.bench_wide")
    watching.cancel()
    expected = TASKS * (TASKS - 1) / 2
    query = "SELECT (result_data #>> '{stage_2,sum}')::float8 FROM dagapp.dag_jobs WHERE status = 'completed'"
    assert await client.number(query) == expected
    orchestrator, worker = (max(map(peak, _pids(roles, role))) for role in ("orchestrator", "worker"))
    peaks = f"at most {orchestrator:.0f} MB in the orchestrator, {worker:.0f} in a worker, {max(children.values()):.0f}"
    return [Figure(f"a stage of {TASKS:,} tasks", TASKS / seconds, "tasks/s", f"{peaks} in the process of the code")]


async def _watch(roles: Roles, children: dict[int, float]) -> None:
    """The processes in which the job's code runs, as long as they are there."""
    while True:
        for pid in _pids(roles, "worker"):
            children |= {child: peak(child) for child in _children(pid)}
        await asyncio.sleep(0.2)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _pids(roles: Roles, role: str) -> list[int]:
    return [process.pid for process in roles.processes[role]]
