"""Runs a controller's code as a step of a job: makes the tasks of a stage, or aggregates their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from geomill.domain.jsonvalue import NotJson, to_json
from geomill.domain.large import CONTAINER, LARGE, large_output
from geomill.domain.stage_job import stage_task_id
from geomill.errors import GeomillError
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Storage, Zone
from geomill.stages.controller import JobExecutionContext, StageController, StageResults, TaskResult
from geomill.stages.definitions import StageDefinition, WorkflowDefinition
from geomill.stages.planning import planned
from geomill.storage import NO_STORAGE

LARGEST_RESULT = LARGE - 1_000
"""What a step returns beside it must not make it large."""

Returned = TypeVar("Returned")


class Outcome(BaseModel):
    """As a fan_in tells it."""

    index: int
    status: Literal["completed", "failed"]
    output: Any = None
    error: str | None = None


class StepParams(BaseModel):
    """What the compiled workflow gives to a step."""

    action: Literal["plan", "aggregate"]
    stage: int
    job_id: str
    attempt: int = 1
    parameters: dict[str, Any] = {}
    stage_results: dict[int, dict[str, Any]] = {}
    indexes: list[str] | None = None
    """Of the tasks whose outcomes these are; None when they are their positions."""
    outcomes: list[Outcome] = []


def run_step(
    job_type: str, definition: WorkflowDefinition, controller: type[StageController], ctx: HandlerContext[Any]
) -> dict[str, Any]:
    step = StepParams.model_validate(ctx.params)
    stage = definition.stage(step.stage)
    if step.action == "plan":
        return _plan(job_type, stage, controller, step, ctx.storage)
    return _aggregate(stage, controller, step, ctx)


def _plan(
    job_type: str, stage: StageDefinition, controller: type[StageController], step: StepParams, storage: Storage
) -> dict[str, Any]:
    previous = _results(step, step.stage - 1, storage)
    context = JobExecutionContext(
        job_id=step.job_id,
        job_type=job_type,
        stage=step.stage,
        parameters=controller.typed(controller.validate_parameters(job_type, step.parameters)),
        attempt=step.attempt,
        stage_results=StageResults(
            {number: partial(_loaded, result, storage) for number, result in step.stage_results.items()}
        ),
        previous_results=previous,
    )
    made = _guarded("create_stage_tasks", stage, lambda: list(controller().create_stage_tasks(step.stage, context)))
    tasks = planned(stage, made, previous)
    indexes = [task.index for task in tasks]
    numbered = indexes == [str(place) for place in range(len(tasks))]
    return {
        "tasks": [task.parameters for task in tasks],
        "indexes": None if numbered else indexes,
        "total": len(tasks),
    }


def _aggregate(
    stage: StageDefinition, controller: type[StageController], step: StepParams, ctx: HandlerContext[Any]
) -> dict[str, Any]:
    results = _results(step, step.stage, ctx.storage)
    completed = sum(result.success for result in results)
    if results and not completed:
        first = results[0]
        raise HandlerError(
            f"every task of stage {step.stage} ({stage.stage_name}) failed; {first.task_id}: {first.error_details}",
            retryable=False,
            code="stage_failed",
        )
    found = _guarded(
        "aggregate_stage_results", stage, lambda: dict(controller().aggregate_stage_results(step.stage, results))
    )
    counts = {"total": len(results), "completed": completed, "failed": len(results) - completed}
    return {"result": _put_aside(found, step, ctx), "counts": counts}


def _guarded(method: str, stage: StageDefinition, call: Callable[[], Returned]) -> Returned:
    """What the author's code raises. It would raise the same again, unless it says otherwise itself."""
    try:
        return call()
    except GeomillError:
        raise
    except Exception as error:
        raise HandlerError(
            f"{method} of stage {stage.stage_number} ({stage.stage_name}) raised {type(error).__name__}: {error}",
            retryable=False,
            code="controller_error",
        ) from error


def _results(step: StepParams, stage: int, storage: Storage) -> Sequence[TaskResult]:
    return [_result(step, stage, outcome, storage) for outcome in step.outcomes]


def _result(step: StepParams, stage: int, outcome: Outcome, storage: Storage) -> TaskResult:
    index = step.indexes[outcome.index] if step.indexes else str(outcome.index)
    large = large_output(outcome.output)
    name = ObjectName(Zone.SILVER, large.container, large.path) if large else None
    return TaskResult(
        task_id=stage_task_id(step.job_id, stage, index),
        task_index=index,
        success=outcome.status == "completed",
        result_data=outcome.output if isinstance(outcome.output, dict) and not large else {},
        large_metadata_path=str(name) if name else None,
        error_details=outcome.error,
        read=partial(_read, storage, name) if name else dict,
    )


def _read(storage: Storage, name: ObjectName) -> Any:
    return json.loads(storage.sync.read(name))


def _put_aside(result: dict[str, Any], step: StepParams, ctx: HandlerContext[Any]) -> dict[str, Any]:
    """A stage's result goes into the job's, which is a row: a large one becomes the place where it lies."""
    try:
        content = to_json(result)
    except NotJson as error:
        raise HandlerError(
            f"what aggregate_stage_results of stage {step.stage} returned cannot be stored: {error}",
            retryable=False,
            code="invalid_output",
        ) from error
    if len(content) <= LARGEST_RESULT or ctx.storage is NO_STORAGE:
        return result
    path = f"{ctx.job_id[:8]}/{ctx.job_id}/stage-{step.stage}-result-{ctx.attempt}.json"
    stored = ctx.storage.sync.put_bytes(ObjectName(Zone.SILVER, CONTAINER, path), content.encode())
    return {"large_metadata_path": str(stored.name), "sha256": stored.sha256, "size": stored.size}


def _loaded(result: dict[str, Any], storage: Storage) -> dict[str, Any]:
    if result.keys() != {"large_metadata_path", "sha256", "size"}:
        return result
    found: dict[str, Any] = _read(storage, ObjectName.parse(result["large_metadata_path"]))
    return found
