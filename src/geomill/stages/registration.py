"""The decorator that declares a stage job. It marks the class and changes nothing global.

The class gets two marks. One says that it is a stage job. The other is a handler, by which workers find and run its
code like any other step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from geomill.domain.engine.handler import HandlerInfo
from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.stage_job import stage_job_id, workflow_id
from geomill.errors import SettingsError
from geomill.sdk import HandlerContext
from geomill.sdk.registration import MARK, RegisteredHandler
from geomill.stages.controller import StageController
from geomill.stages.definitions import WorkflowDefinition
from geomill.stages.steps import run_step

STAGE_MARK = "__geomill_stage_job__"
STEP_SECONDS = 900.0
"""The timeout of a controller's code."""

Controller = TypeVar("Controller", bound=type[StageController])


@dataclass(frozen=True, slots=True)
class StageJob:
    """A job type: its stages and their code."""

    definition: WorkflowDefinition
    controller: type[StageController]
    description: str = ""
    max_parallel_tasks: int | None = None

    @property
    def job_type(self) -> str:
        return self.definition.job_type

    @property
    def workflow_id(self) -> str:
        return workflow_id(self.job_type)

    def validate(self, parameters: Any) -> dict[str, Any]:
        return self.controller.validate_parameters(self.job_type, parameters)

    def job_id(self, parameters: dict[str, Any]) -> str:
        return stage_job_id(self.job_type, parameters)

    def parallel(self, number: int) -> int | None:
        """Return the maximum number of tasks that run at once: the lower of the limits of stage and job."""
        limits = (self.definition.stage(number).max_parallel_tasks, self.max_parallel_tasks)
        return min((limit for limit in limits if limit is not None), default=None)


def stage_job(
    job_type: str,
    *,
    workflow: WorkflowDefinition | type[WorkflowDefinition],
    description: str = "",
    max_parallel_tasks: int | None = None,
    isolated: bool = True,
) -> Callable[[Controller], Controller]:
    """Declare a job type. If `isolated`, its code runs in a process of its own, as handlers that are not async do."""

    def mark(controller: Controller) -> Controller:
        definition = _definition(job_type, workflow)
        about = description or definition.description or first_line(controller)
        job = StageJob(definition, controller, about, max_parallel_tasks)
        set_marks(controller, job, controller.__module__, isolated=isolated)
        return controller

    return mark


def first_line(source: Any) -> str:
    """Return the first line of the source's own docstring, ignoring inherited ones."""
    return inspect.cleandoc(source.__doc__ or "").partition("\n")[0]


def set_marks(target: Any, job: StageJob, module: str, *, isolated: bool) -> None:
    """Mark `target`, which belongs to `module`, as a stage job and a handler."""

    def step(ctx: HandlerContext[Any]) -> dict[str, Any]:
        return run_step(job.job_type, job.definition, job.controller, ctx)

    step.__module__, step.__qualname__ = module, getattr(target, "__qualname__", job.job_type)
    info = HandlerInfo(job.workflow_id, LIGHT_QUEUE, STEP_SECONDS, description=f"Runs the code of {job.job_type}")
    setattr(target, MARK, RegisteredHandler(info, step, isolated))
    setattr(target, STAGE_MARK, job)


def _definition(job_type: str, workflow: WorkflowDefinition | type[WorkflowDefinition]) -> WorkflowDefinition:
    try:
        definition = workflow.model_validate({}) if isinstance(workflow, type) else workflow
    except ValidationError as error:
        raise SettingsError(f"the stages of '{job_type}' are wrong: {error.errors()[0]['msg']}") from error
    if definition.job_type != job_type:
        raise SettingsError(
            f"the job type '{job_type}' is registered with the workflow of '{definition.job_type}'",
            remedy="give both the same name",
        )
    return definition
