"""Compiles a stage job to the workflow that the engine runs.

    START ─► stage1_plan ─► stage1_tasks ─► stage1_results ─► stage1_aggregate ─► stage2_plan ─► … ─► END
             controller     fan_out         fan_in            controller

The same workflow could be written by hand in YAML.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from geomill.domain.engine.checks import check
from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.workflow import Workflow
from geomill.errors import Problem, WorkflowError
from geomill.stages.definitions import StageDefinition
from geomill.stages.registration import StageJob
from geomill.workflows.loader import resolve

INPUTS = {
    "job_id": {"type": "string", "required": False, "description": "Id of the stage job; the job's own id by default"},
    "attempt": {"type": "integer", "default": 1, "minimum": 1, "description": "Number of the attempt at the stage job"},
    "parameters": {"type": "object", "default": {}, "description": "Parameters as the job type declares them"},
}


def compile_job(job: StageJob, *, handlers: Handlers, queues: Collection[str]) -> Workflow:
    """Compile a stage job. Raises `WorkflowError` if a stage names an unknown handler or queue."""
    workflow = graph_of(job)
    if findings := check(workflow, handlers, queues):
        problems = [Problem(finding.where, finding.message, finding.hint, file=job.job_type) for finding in findings]
        raise WorkflowError(f"the stage job '{job.job_type}' cannot run: {problems[0].message}", problems=problems)
    return resolve(workflow, handlers)


def graph_of(job: StageJob) -> Workflow:
    stages = job.definition.stages
    nodes: dict[str, Any] = {"START": {"type": "start", "next": plan(1)}}
    for stage in stages:
        nodes |= _stage(job, stage)
    nodes["END"] = {"type": "end"}
    return Workflow.model_validate(
        {
            "workflow_id": job.workflow_id,
            "name": f"{job.job_type}, in {len(stages)} {'stage' if len(stages) == 1 else 'stages'}",
            "description": job.description or None,
            "inputs": INPUTS,
            "nodes": nodes,
            "outputs": {f"stage_{stage.stage_number}": _result(stage.stage_number) for stage in stages},
        }
    )


def stage_of(node_id: str) -> int | None:
    """Return the number of the stage to which a node belongs, or None."""
    match = re.match(r"stage(\d+)_", node_id)
    return int(match[1]) if match else None


def plan(number: int) -> str:
    return f"stage{number}_plan"


def tasks(number: int) -> str:
    return f"stage{number}_tasks"


def results(number: int) -> str:
    return f"stage{number}_results"


def aggregate(number: int) -> str:
    return f"stage{number}_aggregate"


def _stage(job: StageJob, stage: StageDefinition) -> dict[str, Any]:
    number = stage.stage_number
    following = plan(number + 1) if number < job.definition.total_stages else "END"
    return {
        plan(number): _step(job, "plan", number, tasks_of=number - 1, following=tasks(number)),
        tasks(number): _fan_out(job, stage),
        results(number): {"type": "fan_in", "aggregation": "count", "next": aggregate(number)},
        aggregate(number): _step(job, "aggregate", number, tasks_of=number, following=following),
    }


def _step(job: StageJob, action: str, number: int, *, tasks_of: int, following: str) -> dict[str, Any]:
    params: dict[str, Any] = {
        "action": action,
        "stage": number,
        "job_id": "{{ inputs.job_id or job.job_id }}",
        "attempt": "{{ inputs.attempt }}",
        "parameters": "{{ inputs.parameters }}",
    }
    if action == "plan" and number > 1:
        params["stage_results"] = {f"{earlier}": _result(earlier) for earlier in range(1, number)}
    if tasks_of:
        params["tasks"] = {
            "node_id": tasks(tasks_of),
            "total": f"{{{{ nodes.{tasks(tasks_of)}.output.total }}}}",
            "completed": f"{{{{ nodes.{results(tasks_of)}.output.count }}}}",
            "indexes": f"{{{{ nodes.{plan(tasks_of)}.output.indexes }}}}",
        }
        if action == "plan":
            params["tasks"]["hand_over"] = f"{{{{ nodes.{aggregate(tasks_of)}.output.hand_over }}}}"
    return {"type": "task", "handler": job.workflow_id, "params": params, "next": following}


def _fan_out(job: StageJob, stage: StageDefinition) -> dict[str, Any]:
    number = stage.stage_number
    breaker = stage.circuit_breaker
    task: dict[str, Any] = {
        "handler": stage.task_type,
        "params": "{{ item }}",
        "queue": stage.queue,
        "timeout_seconds": stage.timeout_minutes * 60,
        "retry": job.definition.retry_of(stage).model_dump(),
        "circuit_breaker": breaker.model_dump() if breaker else None,
    }
    return {
        "type": "fan_out",
        "description": stage.stage_name,
        "source": f"{{{{ nodes.{plan(number)}.output.tasks }}}}",
        "task": task,
        "max_parallel": job.parallel(number),
        "on_failure": _on_failure(stage),
        "next": results(number),
    }


def _on_failure(stage: StageDefinition) -> Any:
    if isinstance(stage.allow_partial, str):
        return {"tolerate": stage.allow_partial}
    return "continue" if stage.allow_partial else "fail"


def _result(number: int) -> str:
    return f"{{{{ nodes.{aggregate(number)}.output.result }}}}"
