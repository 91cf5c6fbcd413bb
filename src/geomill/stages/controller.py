"""What the author of a stage job writes: how a stage's tasks are made, and what its results come to."""

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
    """A task with an index of its own, such as "tile_x5_y10". Without one, it is the task's position."""

    parameters: Mapping[str, Any]
    index: str | None = None


@dataclass(slots=True)
class TaskResult:
    """How a task of a stage ended. Failed ones are among them only where the stage allows it."""

    task_id: str
    task_index: str
    success: bool = True
    result_data: dict[str, Any] = field(default_factory=dict)
    """Empty if it has more than a megabyte: then it lies at `large_metadata_path`, and `load()` reads it."""
    large_metadata_path: str | None = None
    error_details: str | None = None
    read: Callable[[], Any] = field(default=_nothing, repr=False, compare=False)

    def load(self) -> dict[str, Any]:
        """The result, wherever it lies."""
        return dict(self.read()) if self.large_metadata_path else self.result_data

    @property
    def next_stage_params(self) -> dict[str, Any] | None:
        """What the task hands to the task of the same index in the next stage."""
        params = self.load().get("next_stage_params")
        return params if isinstance(params, dict) else None


class StageResults(Mapping[int, dict[str, Any]]):
    """The aggregated results of the stages so far, by number. A large one is read when it is asked for."""

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
    """What is known when a stage begins."""

    job_id: str
    job_type: str
    stage: int
    parameters: Any
    """An instance of the controller's `Parameters`, or a dict without one."""
    attempt: int = 1
    stage_results: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    previous_results: Sequence[TaskResult] = ()
    """Of each task of the stage before."""


class StageController(ABC):
    """The code of a job type. It is made anew for each step, on whichever worker runs it, so it keeps nothing."""

    Parameters: ClassVar[type[BaseModel] | None] = None
    """What a job is given. Without a model, any object."""

    @abstractmethod
    def create_stage_tasks(
        self, stage: int, context: JobExecutionContext
    ) -> Sequence[Mapping[str, Any] | BaseModel | StageTask]:
        """The parameters of each task of the stage."""

    def aggregate_stage_results(
        self,
        stage: int,  # noqa: ARG002  for those who write their own
        results: Sequence[TaskResult],
    ) -> Mapping[str, Any]:
        """What the stage comes to: a part of the job's result, and known to later stages."""
        return default_aggregate(results)

    @classmethod
    def validate_parameters(cls, job_type: str, values: Any) -> dict[str, Any]:
        """Canonical: the same request gives the same. Raises `InputsError` with every problem."""
        return validated(job_type, cls.Parameters, values)

    @classmethod
    def parameters_schema(cls) -> dict[str, Any]:
        return schema_of(cls.Parameters)

    @classmethod
    def typed(cls, parameters: dict[str, Any]) -> Any:
        return cls.Parameters.model_validate(parameters) if cls.Parameters else parameters


def default_aggregate(results: Sequence[TaskResult]) -> dict[str, Any]:
    """The result of a single task; else how many there were."""
    if len(results) == 1 and results[0].success:
        return {key: value for key, value in results[0].load().items() if key != "next_stage_params"}
    completed = sum(result.success for result in results)
    return {"total": len(results), "completed": completed, "failed": len(results) - completed}
