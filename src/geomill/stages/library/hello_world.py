"""The smallest stage job: two stages. The tutorial builds one like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from geomill.stages import (
    JobExecutionContext,
    StageController,
    StageDefinition,
    TaskResult,
    WorkflowDefinition,
    stage_job,
)


class HelloParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, description="Name to greet")] = "World"
    greetings: Annotated[int, Field(ge=1, le=10_000, description="Number of greetings")] = 3


class HelloWorkflow(WorkflowDefinition):
    job_type: str = "hello_world"
    description: str = "Greets several times, then answers each greeting"
    stages: list[StageDefinition] = [  # noqa: RUF012  Pydantic copies it
        StageDefinition(stage_number=1, stage_name="greet", task_type="hello_world", max_parallel_tasks=100),
        StageDefinition(
            stage_number=2, stage_name="answer", task_type="echo", max_parallel_tasks=100, depends_on_stage=1
        ),
    ]


@stage_job("hello_world", workflow=HelloWorkflow)
class HelloController(StageController):
    Parameters = HelloParameters

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        if stage == 1:
            name, count = context.parameters.name, context.parameters.greetings
            return [{"name": name if count == 1 else f"{name} {number}"} for number in range(1, count + 1)]
        return [{"answer_to": result.result_data["message"]} for result in context.previous_results]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        if stage == 1:
            return {"greetings": [result.result_data["message"] for result in results][:10], "total": len(results)}
        return {"answers": len(results)}
