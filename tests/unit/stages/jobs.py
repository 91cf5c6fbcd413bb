"""Stage jobs to try the compiler and the steps with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from geomill.stages import JobExecutionContext, StageController, StageDefinition, TaskResult, WorkflowDefinition
from geomill.stages.registration import StageJob


def controller(
    create: Callable[[int, JobExecutionContext], Sequence[Any]] | None = None,
    aggregate: Callable[[int, Sequence[TaskResult]], Any] | None = None,
) -> type[StageController]:
    class Controller(StageController):
        def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Any]:
            return create(stage, context) if create else [{}]

        def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Any:
            return aggregate(stage, results) if aggregate else super().aggregate_stage_results(stage, results)

    return Controller


def job_of(*stages: dict[str, Any], made_by: type[StageController] | None = None, **more: Any) -> StageJob:
    """Stages of echoes, unless they say otherwise."""
    defined = [
        StageDefinition(**{"stage_number": number, "stage_name": f"s{number}", "task_type": "echo", **stage})
        for number, stage in enumerate(stages or ({},), 1)
    ]
    retries = more.pop("retries", {})
    definition = WorkflowDefinition(job_type="tried", stages=defined, retries=retries)
    return StageJob(definition, made_by or controller(), **more)
