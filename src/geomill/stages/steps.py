"""Runs a controller's code as a step of a job: creates the tasks of a stage, or aggregates their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from geomill.domain.engine.large import KEY, LARGE, LargeOutput, large_output
from geomill.domain.engine.message import STAGE_TASK_ID
from geomill.domain.engine.stage_job import stage_task_id
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.errors import GeomillError
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Storage
from geomill.sdk.outcomes import ItemOutcome
from geomill.stages.controller import JobExecutionContext, StageController, StageResults, TaskResult
from geomill.stages.definitions import StageDefinition, WorkflowDefinition
from geomill.stages.planning import NEXT, planned
from geomill.stages.results import TaskResults
from geomill.storage import NO_STORAGE

LARGEST_RESULT = LARGE - 1_000
"""The largest result that leaves room for the step's other values below the limit of large outputs."""

Returned = TypeVar("Returned")


class Tasks(BaseModel):
    """The ended tasks of a stage, without results, which are read from the database in pages."""

    model_config = ConfigDict(extra="forbid")

    node_id: str
    total: int
    completed: int
    indexes: list[str] | None = None
    """None if they are positions."""
    hand_over: bool | None = None
    """Whether a task passes parameters to the next stage; None if unknown."""


class StepParams(BaseModel):
    """The parameters of a step in the compiled workflow."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["plan", "aggregate"]
    stage: int
    job_id: str
    attempt: int = 1
    parameters: dict[str, Any] = {}
    stage_results: dict[int, dict[str, Any]] = {}
    tasks: Tasks | None = None
    """The tasks to aggregate or, when planning, those of the previous stage."""


def run_step(
    job_type: str, definition: WorkflowDefinition, controller: type[StageController], ctx: HandlerContext[Any]
) -> dict[str, Any]:
    step = StepParams.model_validate(ctx.params)
    stage = definition.stage(step.stage)
    if step.action == "plan":
        return _plan(job_type, stage, controller, step, ctx)
    return _aggregate(stage, controller, step, ctx)


def _plan(
    job_type: str,
    stage: StageDefinition,
    controller: type[StageController],
    step: StepParams,
    ctx: HandlerContext[Any],
) -> dict[str, Any]:
    previous = _Ended(step, step.stage - 1, ctx)
    context = JobExecutionContext(
        job_id=step.job_id,
        job_type=job_type,
        stage=step.stage,
        parameters=controller.typed(controller.validate_parameters(job_type, step.parameters)),
        attempt=step.attempt,
        stage_results=StageResults(
            {number: partial(_loaded, result, ctx.storage) for number, result in step.stage_results.items()}
        ),
        previous_results=previous.results(),
    )
    returned = _guarded("create_stage_tasks", stage, lambda: list(controller().create_stage_tasks(step.stage, context)))
    tasks = planned(stage, returned, previous.handed_over())
    indexes = [task.index for task in tasks]
    numbered = indexes == [str(place) for place in range(len(tasks))]
    return {
        "tasks": [
            {**task.parameters, STAGE_TASK_ID: stage_task_id(step.job_id, step.stage, task.index)} for task in tasks
        ],
        "indexes": None if numbered else indexes,
        "total": len(tasks),
    }


def _aggregate(
    stage: StageDefinition, controller: type[StageController], step: StepParams, ctx: HandlerContext[Any]
) -> dict[str, Any]:
    ended = _Ended(step, step.stage, ctx)
    results, completed = ended.results(), ended.tasks.completed
    if results and not completed:
        first = results[0]
        raise HandlerError(
            f"every task of stage {step.stage} ({stage.stage_name}) failed; {first.task_id}: {first.error_details}",
            retryable=False,
            code="stage_failed",
        )
    aggregated = _guarded(
        "aggregate_stage_results", stage, lambda: dict(controller().aggregate_stage_results(step.stage, results))
    )
    counts = {"total": len(results), "completed": completed, "failed": len(results) - completed}
    return {"result": _put_aside(aggregated, step, ctx), "counts": counts, "hand_over": ended.hand_over}


def _guarded(method: str, stage: StageDefinition, call: Callable[[], Returned]) -> Returned:
    """Call the author's code. Its errors are not retried, because it would raise them again, unless they say so
    themselves."""
    try:
        return call()
    except GeomillError:
        raise
    except Exception as error:
        raise HandlerError(
            f"{method} of stage {stage.stage_number} ({stage.stage_name}) raised {type(error).__name__}: "
            "the task's log has more",
            retryable=False,
            code="controller_error",
        ) from error


class _Ended:
    """The tasks of an ended stage."""

    def __init__(self, step: StepParams, stage: int, ctx: HandlerContext[Any]) -> None:
        self.tasks = step.tasks or Tasks(node_id="", total=0, completed=0)
        self._job_id = step.job_id
        self._stage = stage
        self._ctx = ctx
        self._looked_at = 0
        self._may_hand_over = False

    @property
    def hand_over(self) -> bool | None:
        """Return whether tasks pass on parameters, or None if the controller's code has not read all results."""
        return None if self._looked_at < self.tasks.total else self._may_hand_over

    def results(self) -> TaskResults:
        return TaskResults(self.tasks.total, lambda place: self._page(after=place - 1))

    def handed_over(self) -> Iterator[TaskResult]:
        """Yield the results that may have parameters for the next stage."""
        after, may = -1, self.tasks.completed > 0 and self.tasks.hand_over is not False
        while may and (outcomes := self._ctx.item_outcomes(self.tasks.node_id, after=after, having=NEXT)):
            yield from map(self._result, outcomes)
            after = outcomes[-1].index

    def _page(self, after: int) -> list[TaskResult]:
        outcomes = self._ctx.item_outcomes(self.tasks.node_id, after=after)
        if outcomes and after + 1 == self._looked_at:
            self._looked_at = outcomes[-1].index + 1
            self._may_hand_over |= any(
                outcome.output and (NEXT in outcome.output or KEY in outcome.output) for outcome in outcomes
            )
        return list(map(self._result, outcomes))

    def _result(self, outcome: ItemOutcome) -> TaskResult:
        indexes = self.tasks.indexes
        index = indexes[outcome.index] if indexes else str(outcome.index)
        large = large_output(outcome.output)
        return TaskResult(
            task_id=stage_task_id(self._job_id, self._stage, index),
            task_index=index,
            success=outcome.error is None,
            result_data=outcome.output if isinstance(outcome.output, dict) and not large else {},
            large_metadata_path=str(large.name) if large else None,
            error_details=outcome.error,
            read=partial(self._ctx.read_output, outcome.output) if large else dict,
        )


def _put_aside(result: dict[str, Any], step: StepParams, ctx: HandlerContext[Any]) -> dict[str, Any]:
    """Return the result, or its place in the store if it is large. The result becomes part of the job's row."""
    try:
        content = to_json(result)
    except NotJson as error:
        raise HandlerError(
            f"the result of aggregate_stage_results of stage {step.stage} cannot be stored: {error}",
            retryable=False,
            code="invalid_output",
        ) from error
    if len(content) <= LARGEST_RESULT or ctx.storage is NO_STORAGE:
        return result
    large = LargeOutput.of(ctx.job_id, f"stage-{step.stage}-result", ctx.attempt, content.encode())
    stored = ctx.storage.sync.put_bytes(large.name, content.encode())
    return {"large_metadata_path": str(stored.name), "sha256": stored.sha256, "size": stored.size}


def _loaded(result: dict[str, Any], storage: Storage) -> dict[str, Any]:
    if result.keys() != {"large_metadata_path", "sha256", "size"}:
        return result
    content: dict[str, Any] = json.loads(storage.sync.read(ObjectName.parse(result["large_metadata_path"])))
    return content
