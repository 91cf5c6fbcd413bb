"""Four stages of 1,000 tasks that do nothing, as a stage job through the HTTP API, and as the same graph in YAML.

The same graph: as many nodes, the same handler for the tasks, a step before and a step behind each fan-out, and code
that looks at every result. By hand they are collected by a fan_in and given to the steps, as one would write it.

They run in turns, the one first in every other turn, so that what disturbs the one disturbs the other; each turn gives
a ratio, and the median of the ratios counts. The leanest graph that comes to the same, with nothing but fan-outs and
counts, is beside them in every fourth turn: the difference is what a stage's own code costs.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import httpx

from benchmarks import wide
from benchmarks.engine import _until_it_answers, free_port
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, running
from benchmarks.server import database
from geomill.sdk import HandlerContext, register_handler
from geomill.stages import (
    JobExecutionContext,
    StageController,
    StageDefinition,
    TaskResult,
    WorkflowDefinition,
    stage_job,
)

STAGES, TASKS, REPEATS = 4, 1_000, 40
PAUSE_SECONDS = 0.15
"""The pause after a job, in which its last writes end."""
MODULE = "benchmarks.stages"


@stage_job(
    "bench_stages",
    workflow=WorkflowDefinition(
        job_type="bench_stages",
        stages=[
            StageDefinition(stage_number=number, stage_name=f"stage {number}", task_type="bench.noop")
            for number in range(1, STAGES + 1)
        ],
    ),
)
class BenchController(StageController):
    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        return [{}] * TASKS

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        return {"count": sum(result.success for result in results)}


@register_handler("bench.plan")
def plan(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """Plan the tasks as an author of the same graph would write it."""
    return {"tasks": [{}] * TASKS}


@register_handler("bench.aggregate")
def aggregate(ctx: HandlerContext[Any]) -> dict[str, Any]:
    return {"result": {"count": sum(result is not None for result in ctx.params["results"])}}


def by_hand() -> dict[str, Any]:
    nodes: dict[str, Any] = {"START": {"type": "start", "next": "plan1"}, "END": {"type": "end"}}
    for number in range(1, STAGES + 1):
        before = {"previous": f"{{{{ nodes.gather{number - 1}.output.results }}}}"} if number > 1 else {}
        nodes[f"plan{number}"] = {"handler": "bench.plan", "params": before, "next": f"tasks{number}"}
        nodes[f"tasks{number}"] = _fan_out(number, f"{{{{ nodes.plan{number}.output.tasks }}}}", f"gather{number}")
        nodes[f"gather{number}"] = {"type": "fan_in", "aggregation": "collect", "next": f"aggregate{number}"}
        nodes[f"aggregate{number}"] = {
            "handler": "bench.aggregate",
            "params": {"results": f"{{{{ nodes.gather{number}.output.results }}}}"},
            "next": f"plan{number + 1}" if number < STAGES else "END",
        }
    return {"workflow_id": "bench_by_hand", "name": "By hand", "nodes": nodes}


def lean() -> dict[str, Any]:
    nodes: dict[str, Any] = {"START": {"type": "start", "next": "tasks1"}, "END": {"type": "end"}}
    for number in range(1, STAGES + 1):
        nodes[f"tasks{number}"] = _fan_out(number, f"{{{{ range({TASKS}) | list }}}}", f"gather{number}", params={})
        following = f"tasks{number + 1}" if number < STAGES else "END"
        nodes[f"gather{number}"] = {"type": "fan_in", "aggregation": "count", "next": following}
    return {"workflow_id": "bench_lean", "name": "Lean", "nodes": nodes}


def _fan_out(number: int, source: str, following: str, params: Any = "{{ item }}") -> dict[str, Any]:
    return {"type": "fan_out", "source": source, "task": {"handler": "bench.noop", "params": params}, "next": following}


def run() -> list[Figure]:
    workflows = (by_hand(), lean())
    with database() as url, running(url, measure, workers=2, workflows=workflows, modules=(MODULE,)) as seconds:
        figures = _figures(seconds)
    return [*figures, *wide.run()]


async def measure(client: BenchmarkClient, roles: Roles) -> dict[str, list[float]]:
    port = free_port()
    roles.start("gateway", "--port", str(port))
    seconds_by_graph: dict[str, list[float]] = {"stages": [], "by hand": [], "lean": []}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=await client.credential()) as http:
        await _until_it_answers(http)
        numbers = count()
        ways: dict[str, Any] = {
            "stages": lambda: _submit(http, "/api/jobs/submit/bench_stages", {"number": next(numbers)}),
            "by hand": lambda: _submit(http, "/api/v1/jobs", {"workflow_id": "bench_by_hand"}),
            "lean": lambda: _submit(http, "/api/v1/jobs", {"workflow_id": "bench_lean"}),
        }
        for turn in range(-2, REPEATS):  # the first ones warm up
            order = ("by hand", "stages") if turn % 2 else ("stages", "by hand")
            for name in (*order, "lean") if turn % 4 == 0 else order:
                seconds = await _timed(client, ways[name])
                if turn >= 0:
                    seconds_by_graph[name].append(seconds)
                await asyncio.sleep(PAUSE_SECONDS)
    return seconds_by_graph


async def _submit(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> str:
    answer = (await http.post(path, json=body)).raise_for_status().json()
    return str(answer.get("message_id") or answer["job_id"])


async def _timed(client: BenchmarkClient, submit: Any) -> float:
    begun = time.time()
    job_id = await submit()
    await client.ended([job_id])
    query = "SELECT extract(epoch FROM completed_at) FROM dagapp.dag_jobs WHERE job_id = %s AND status = 'completed'"
    return await client.number(query, job_id) - begun


def _figures(seconds: dict[str, list[float]]) -> list[Figure]:
    stages, by_hand, lean = (statistics.median(seconds[name]) for name in ("stages", "by hand", "lean"))
    tasks = STAGES * TASKS
    low, _, high = statistics.quantiles(seconds["stages"], n=4)
    runs = f"half of {REPEATS} runs take {low:.2f} to {high:.2f} s"
    return [
        Figure(f"{STAGES} stages of {TASKS:,} tasks, as a stage job", tasks / stages, "tasks/s", runs),
        Figure("   the same graph in YAML", tasks / by_hand, "tasks/s", _ratio(seconds["stages"], seconds["by hand"])),
        Figure("   the leanest graph", tasks / lean, "tasks/s", f"{stages / lean:.0%}"),
    ]


def _ratio(stage_times: list[float], other_times: list[float]) -> str:
    """Compare turn by turn, so that a disturbance longer than a turn is in neither."""
    ratios = [stage_time / other_time for stage_time, other_time in zip(stage_times, other_times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"stages take {middle:.1%} of its time; half of the turns {low:.0%} to {high:.0%}"
