"""The definition of a stage job: consecutive stages, each with many tasks of one type."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.retry import RetryPolicy
from geomill.domain.engine.stage_job import JOB_TYPE, LONGEST_JOB_TYPE
from geomill.domain.engine.workflow import Queue

MOST_STAGES = 100


class StageDefinition(BaseModel):
    """One stage. All its tasks run the same handler. The next stage begins when the last task has ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage_number: Annotated[int, Field(ge=1, le=MOST_STAGES)]
    stage_name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    task_type: Annotated[str, StringConstraints(min_length=1, max_length=64, strip_whitespace=True)] = Field(
        description="Name of the handler that runs each task"
    )
    max_parallel_tasks: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Maximum number of tasks that run at once; unlimited by default"
    )
    timeout_minutes: Annotated[float, Field(gt=0, le=10_080)] = Field(
        default=30, description="Timeout of one attempt at a task"
    )
    depends_on_stage: int | None = Field(default=None, description="Number of the previous stage; optional")
    queue: Queue | None = Field(default=None, description="Queue of its tasks; the handler's own by default")
    single: bool = Field(default=False, description="Whether it has exactly one task")
    retry: RetryPolicy | None = Field(
        default=None, description="Retry policy of its tasks; that of the task type by default"
    )
    allow_partial: bool | Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?%?$")] = Field(
        default=False, description="Whether tasks may fail: true for all but one, or a limit such as '5%'"
    )
    circuit_breaker: CircuitBreaker | None = Field(
        default=CircuitBreaker(), description="When failures of the task type hold its tasks back; None disables it"
    )


class WorkflowDefinition(BaseModel):
    """The stages of a job type, from the first to the last."""

    model_config = ConfigDict(extra="forbid", validate_default=True)

    job_type: str
    description: str = ""
    total_stages: int = Field(default=0, description="Counted if absent")
    stages: list[StageDefinition]
    retries: dict[str, RetryPolicy] = Field(default_factory=dict, description="Retry policies by task type")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """Validate all fields. Subclasses redeclare them with their own types, so field constraints would be lost."""
        if not re.fullmatch(JOB_TYPE, self.job_type) or len(self.job_type) > LONGEST_JOB_TYPE:
            raise ValueError(
                f"the job_type {self.job_type!r} must begin with a letter, consist of letters, digits, '_' and '-', "
                f"and have at most {LONGEST_JOB_TYPE} characters"
            )
        if not 1 <= len(self.stages) <= MOST_STAGES:
            raise ValueError(f"a job has 1 to {MOST_STAGES} stages, not {len(self.stages)}")
        self._check_order()
        if self.total_stages not in (0, len(self.stages)):
            raise ValueError(f"total_stages is {self.total_stages}, but there are {len(self.stages)} stages")
        self.total_stages = len(self.stages)
        return self

    def _check_order(self) -> None:
        for number, stage in enumerate(self.stages, 1):
            if stage.stage_number != number:
                raise ValueError(f"the stage '{stage.stage_name}' has the number {stage.stage_number}, not {number}")
            if stage.depends_on_stage not in (None, number - 1) or stage.depends_on_stage == 0:
                raise ValueError(
                    f"stage {number} depends on stage {stage.depends_on_stage}: stages run one after the other; "
                    "write a workflow for other dependencies"
                )
        names = [stage.stage_name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError("two stages have the same name")

    def stage(self, number: int) -> StageDefinition:
        return self.stages[number - 1]

    def retry_of(self, stage: StageDefinition) -> RetryPolicy:
        """Return the retry policy of the stage, else that of its task type, else the default."""
        return stage.retry or self.retries.get(stage.task_type) or RetryPolicy()


def from_plain(job_type: str, stages: list[dict[str, Any]], description: str = "") -> WorkflowDefinition:
    """Build a definition from dicts with `number`, `name`, `task_type`, `parallelism` ("single" or not) and other
    fields of a stage."""
    return WorkflowDefinition(job_type=job_type, description=description, stages=[_stage(stage) for stage in stages])


def _stage(plain: dict[str, Any]) -> StageDefinition:
    renamed = {"number": "stage_number", "name": "stage_name"}
    fields = {renamed.get(key, key): value for key, value in plain.items() if key not in ("parallelism", "description")}
    return StageDefinition.model_validate({"single": plain.get("parallelism") == "single", **fields})
