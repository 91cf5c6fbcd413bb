"""Stage jobs of plain functions: `stages` as dicts, `create_tasks_for_stage`, `validate_job_parameters`.

The source is a class with static methods, or a module. Tasks are dicts with `parameters` and optionally a `task_id`.
Results of the previous stage come as `{"success": …, "result": …}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from geomill.domain.engine.stage_job import stage_task_id
from geomill.errors import InputsError, Problem, SettingsError
from geomill.sdk import HandlerError
from geomill.stages.controller import JobExecutionContext, StageController, StageTask, TaskResult
from geomill.stages.definitions import WorkflowDefinition, from_plain
from geomill.stages.parameters import storable, wrong
from geomill.stages.registration import StageJob, first_line, set_marks

Source = TypeVar("Source")
FUNCTIONS = ("create_tasks_for_stage", "validate_job_parameters")


def plain_stage_job(
    job_type: str, *, description: str = "", max_parallel_tasks: int | None = None, isolated: bool = True
) -> Callable[[Source], Source]:
    """Turn a class into a stage job or, with `here = plain_stage_job(…)(sys.modules[__name__])`, a module."""

    def mark(source: Source) -> Source:
        for name in FUNCTIONS:
            if not callable(getattr(source, name, None)):
                raise SettingsError(f"the stage job '{job_type}' has no function {name}")
        about = description or first_line(source)
        definition = from_plain(job_type, list(getattr(source, "stages", [])), about)
        controller = type(f"{job_type}Controller", (_Plain,), {"source": source, "definition": definition})
        module = source.__name__ if isinstance(source, ModuleType) else source.__module__
        job = StageJob(definition, controller, about, max_parallel_tasks)
        set_marks(source, job, module, isolated=isolated)
        return source

    return mark


class _Plain(StageController):
    source: ClassVar[Any]
    definition: ClassVar[WorkflowDefinition]

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        plain_tasks = self.source.create_tasks_for_stage(
            stage=stage,
            job_params=context.parameters,
            job_id=context.job_id,
            previous_results=[_plain_result(result) for result in context.previous_results] if stage > 1 else None,
        )
        return [self._task(context, task) for task in plain_tasks]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        own = getattr(self.source, "aggregate_stage_results", None)
        if own is None:
            return super().aggregate_stage_results(stage, results)
        aggregated: Mapping[str, Any] = own(stage, [_plain_result(result) for result in results])
        return aggregated

    def _task(self, context: JobExecutionContext, task: Any) -> StageTask:
        if not isinstance(task, Mapping) or not isinstance(task.get("parameters"), Mapping):
            raise HandlerError(
                f"a task of stage {context.stage} is not a dict with 'parameters'",
                retryable=False,
                code="invalid_stage",
            )
        task_type = self.definition.stage(context.stage).task_type
        if task.get("task_type", task_type) != task_type:
            raise HandlerError(
                f"a task of stage {context.stage} has the type '{task['task_type']}', the stage has '{task_type}'",
                retryable=False,
                code="invalid_stage",
            )
        return StageTask(task["parameters"], _index(context, task.get("task_id")))

    @classmethod
    def validate_parameters(cls, job_type: str, values: Any) -> dict[str, Any]:
        """Validate with the author's function, which refuses parameters with a ValueError."""
        if not isinstance(values, Mapping):
            raise InputsError(f"the parameters of '{job_type}' must be an object")
        try:
            parameters = cls.source.validate_job_parameters(dict(values))
        except (ValueError, TypeError, KeyError) as error:
            field = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
            message = "the parameter is missing" if field else str(error)
            raise wrong(job_type, [Problem(field, message)]) from error
        return storable(job_type, dict(parameters))

    @classmethod
    def parameters_schema(cls) -> dict[str, Any]:
        schema: dict[str, Any] = getattr(cls.source, "parameters_schema", None) or super().parameters_schema()
        return schema


def _index(context: JobExecutionContext, task_id: str | None) -> str | None:
    """Return the index in a task id, without job and stage."""
    if task_id is None:
        return None
    prefix = stage_task_id(context.job_id, context.stage, "")
    if not task_id.startswith(prefix):
        raise HandlerError(
            f"the task id '{task_id}' does not begin with '{prefix}'", retryable=False, code="invalid_stage"
        )
    return task_id.removeprefix(prefix)


def _plain_result(result: TaskResult) -> dict[str, Any]:
    if not result.success:
        return {"success": False, "task_id": result.task_id, "error": result.error_details}
    return {"success": True, "task_id": result.task_id, "result": result.load()}
