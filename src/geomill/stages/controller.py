"""The interface of a stage job's code: how to create the tasks of a stage and how to aggregate their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel

from geomill.stages.parameters import schema_of, validated


def _nothing() -> Any:
    return {}


@dataclass(frozen=True, slots=True)
class StageTask:
    """A task with an index of its own, such as "tile_x5_y10". The default index is the task's position."""

    parameters: Mapping[str, Any]
    index: str | None = None


@dataclass(slots=True)
class TaskResult:
    """The result of a task. Failed tasks are included only if the stage allows failures."""

    task_id: str
    task_index: str
    success: bool = True
    result_data: dict[str, Any] = field(default_factory=dict)
    """The output. Empty if it is larger than a megabyte: then it is stored at `large_metadata_path`, and `load()` reads
    it."""
    large_metadata_path: str | None = None
    error_details: str | None = None
    read: Callable[[], Any] = field(default=_nothing, repr=False, compare=False)

    def load(self) -> dict[str, Any]:
        """Return the output, reading it from the store if it is large."""
        return dict(self.read()) if self.large_metadata_path else self.result_data

    @property
    def next_stage_params(self) -> dict[str, Any] | None:
        """Return the parameters that the task passes to the task with the same index in the next stage."""
        params = self.load().get("next_stage_params")
        return params if isinstance(params, dict) else None


class StageResults(Mapping[int, dict[str, Any]]):
    """Aggregated results of earlier stages, by number. A large one is read on first access."""

    def __init__(self, loaders: Mapping[int, Callable[[], dict[str, Any]]]) -> None:
        self._loaders = loaders
        self._loaded: dict[int, dict[str, Any]] = {}

    def __getitem__(self, stage: int) -> dict[str, Any]:
        if stage not in self._loaded:
            self._loaded[stage] = self._loaders[stage]()
        return self._loaded[stage]

    def __iter__(self) -> Iterator[int]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


@dataclass(frozen=True)
class JobExecutionContext:
    """The input of a controller at the beginning of a stage."""

    job_id: str
    job_type: str
    stage: int
    parameters: Any
    """An instance of the controller's `Parameters`, or a dict without one."""
    attempt: int = 1
    stage_results: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    previous_results: Sequence[TaskResult] = ()
    """The results of the tasks of the previous stage."""


class StageController(ABC):
    """The code of a job type. Each step creates a new instance, on any worker, so instances must not keep state."""

    Parameters: ClassVar[type[BaseModel] | None] = None
    """The model of a job's parameters. Without a model any object is accepted."""

    @abstractmethod
    def create_stage_tasks(
        self, stage: int, context: JobExecutionContext
    ) -> Sequence[Mapping[str, Any] | BaseModel | StageTask]:
        """Return the parameters of each task of the stage."""

    def aggregate_stage_results(
        self,
        stage: int,  # noqa: ARG002  subclasses use it
        results: Sequence[TaskResult],
    ) -> Mapping[str, Any]:
        """Return the result of the stage. It becomes part of the job's result and is available to later stages."""
        return default_aggregate(results)

    @classmethod
    def validate_parameters(cls, job_type: str, values: Any) -> dict[str, Any]:
        """Return the parameters in canonical form, so that equal requests give equal values. Raises `InputsError` with
        every problem."""
        return validated(job_type, cls.Parameters, values)

    @classmethod
    def parameters_schema(cls) -> dict[str, Any]:
        return schema_of(cls.Parameters)

    @classmethod
    def typed(cls, parameters: dict[str, Any]) -> Any:
        return cls.Parameters.model_validate(parameters) if cls.Parameters else parameters


def default_aggregate(results: Sequence[TaskResult]) -> dict[str, Any]:
    """Return the result of a single task, or the number of tasks."""
    if len(results) == 1 and results[0].success:
        return {key: value for key, value in results[0].load().items() if key != "next_stage_params"}
    completed = sum(result.success for result in results)
    return {"total": len(results), "completed": completed, "failed": len(results) - completed}
