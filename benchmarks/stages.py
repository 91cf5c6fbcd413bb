"""Four stages of 1,000 tasks that do nothing, as a stage job through the HTTP API, and as the same graph in YAML.

The two run in turns, so that what disturbs the one disturbs the other. The leanest graph that comes to the same, with
nothing but fan-outs and counts, is beside them: the difference is what a stage's own code costs.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import httpx

from benchmarks.engine import _until_it_answers, free_port
from benchmarks.figures import Figure
from benchmarks.roles import Client, Roles, running
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

STAGES, TASKS, REPEATS = 4, 1_000, 7
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
        return {"count": len(results)}


@register_handler("bench.plan")
def plan(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """What an author of the same graph would write."""
    return {"tasks": [{}] * TASKS}


@register_handler("bench.aggregate")
def aggregate(ctx: HandlerContext[Any]) -> dict[str, Any]:
    return {"result": {"count": len(ctx.params["results"])}}


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
    with database() as url, running(url, measure, workers=2, workflows=workflows, modules=(MODULE,)) as found:
        return _figures(found)


async def measure(client: Client, roles: Roles) -> dict[str, list[float]]:
    port = free_port()
    roles.start("gateway", "--port", str(port))
    found: dict[str, list[float]] = {"stages": [], "by hand": [], "lean": []}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=await client.credential()) as http:
        await _until_it_answers(http)
        numbers = count()
        ways: dict[str, Any] = {
            "stages": lambda: _submit(http, "/api/jobs/submit/bench_stages", {"number": next(numbers)}),
            "by hand": lambda: _submit(http, "/api/v1/jobs", {"workflow_id": "bench_by_hand"}),
            "lean": lambda: _submit(http, "/api/v1/jobs", {"workflow_id": "bench_lean"}),
        }
        for turn in range(REPEATS + 1):
            for name, submit in ways.items():
                seconds = await _timed(client, submit)
                if turn:  # the first warms up
                    found[name].append(seconds)
                await asyncio.sleep(0.5)
    return found


async def _submit(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> str:
    answer = (await http.post(path, json=body)).raise_for_status().json()
    return str(answer.get("message_id") or answer["job_id"])


async def _timed(client: Client, submit: Any) -> float:
    begun = time.time()
    job_id = await submit()
    await client.ended([job_id])
    query = "SELECT extract(epoch FROM completed_at) FROM dagapp.dag_jobs WHERE job_id = %s AND status = 'completed'"
    return await client.number(query, job_id) - begun


def _figures(found: dict[str, list[float]]) -> list[Figure]:
    stages, by_hand, lean = (statistics.median(found[name]) for name in ("stages", "by hand", "lean"))
    tasks = STAGES * TASKS
    spread = ", ".join(f"{seconds:.2f}" for seconds in sorted(found["stages"]))
    return [
        Figure(f"{STAGES} stages of {TASKS:,} tasks, as a stage job", tasks / stages, "tasks/s", f"runs: {spread} s"),
        Figure(
            "   the same graph in YAML", tasks / by_hand, "tasks/s", f"stages take {stages / by_hand:.1%} of its time"
        ),
        Figure("   the leanest graph: fan-outs and counts", tasks / lean, "tasks/s", f"{stages / lean:.1%}"),
    ]
