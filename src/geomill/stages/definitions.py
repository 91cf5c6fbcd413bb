"""What a stage job consists of: stages one after the other, each with many tasks of one type."""

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
    """One stage. All its tasks run the same handler; the next stage begins when the last of them has ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage_number: Annotated[int, Field(ge=1, le=MOST_STAGES)]
    stage_name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    task_type: Annotated[str, StringConstraints(min_length=1, max_length=64, strip_whitespace=True)] = Field(
        description="Name of the handler that runs each task"
    )
    max_parallel_tasks: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How many run at once; no limit when absent"
    )
    timeout_minutes: Annotated[float, Field(gt=0, le=10_080)] = Field(
        default=30, description="Of one attempt at a task"
    )
    depends_on_stage: int | None = Field(default=None, description="The stage before, if it is said at all")
    queue: Queue | None = Field(default=None, description="Of its tasks; the handler's own when absent")
    single: bool = Field(default=False, description="Whether it has exactly one task")
    retry: RetryPolicy | None = Field(default=None, description="Of its tasks; that of the task type when absent")
    allow_partial: bool | Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?%?$")] = Field(
        default=False, description="Whether tasks may fail: all but one, or so many, such as '5%'"
    )
    circuit_breaker: CircuitBreaker | None = Field(
        default=CircuitBreaker(), description="When failures of its task type hold tasks back; None switches it off"
    )


class WorkflowDefinition(BaseModel):
    """The stages of a job type, from the first to the last."""

    model_config = ConfigDict(extra="forbid", validate_default=True)

    job_type: str
    description: str = ""
    total_stages: int = Field(default=0, description="Counted when absent")
    stages: list[StageDefinition]
    retries: dict[str, RetryPolicy] = Field(default_factory=dict, description="By task type")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """Also of a subclass, which writes its fields anew, with types of its own."""
        if not re.fullmatch(JOB_TYPE, self.job_type) or len(self.job_type) > LONGEST_JOB_TYPE:
            raise ValueError(
                f"the job_type {self.job_type!r} is not of letters, digits, '_' and '-', beginning with a letter, "
                f"at most {LONGEST_JOB_TYPE} of them"
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
                    "write a workflow if steps depend on each other in another way"
                )
        names = [stage.stage_name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError("two stages have the same name")

    def stage(self, number: int) -> StageDefinition:
        return self.stages[number - 1]

    def retry_of(self, stage: StageDefinition) -> RetryPolicy:
        """What the stage says, else what is said of its task type, else the usual."""
        return stage.retry or self.retries.get(stage.task_type) or RetryPolicy()


def from_plain(job_type: str, stages: list[dict[str, Any]], description: str = "") -> WorkflowDefinition:
    """Stages as plain dicts: `number`, `name`, `task_type`, `parallelism` ("single" or not), and whatever else."""
    return WorkflowDefinition(job_type=job_type, description=description, stages=[_stage(stage) for stage in stages])


def _stage(plain: dict[str, Any]) -> StageDefinition:
    renamed = {"number": "stage_number", "name": "stage_name"}
    fields = {renamed.get(key, key): value for key, value in plain.items() if key not in ("parallelism", "description")}
    return StageDefinition.model_validate({"single": plain.get("parallelism") == "single", **fields})
