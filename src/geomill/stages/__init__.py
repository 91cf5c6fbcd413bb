"""Everything that an author of a stage job imports. Stage jobs run on the engine as compiled workflows."""

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.retry import RetryPolicy
from geomill.stages.controller import JobExecutionContext, StageController, StageTask, TaskResult
from geomill.stages.definitions import StageDefinition, WorkflowDefinition
from geomill.stages.plain import plain_stage_job
from geomill.stages.registration import stage_job

__all__ = [
    "CircuitBreaker",
    "JobExecutionContext",
    "RetryPolicy",
    "StageController",
    "StageDefinition",
    "StageTask",
    "TaskResult",
    "WorkflowDefinition",
    "plain_stage_job",
    "stage_job",
]
