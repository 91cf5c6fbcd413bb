"""Turns the tasks that a controller returns into tasks with unique indexes and passed-on parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from geomill.domain.engine.finding import shown
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.sdk import HandlerError
from geomill.stages.controller import StageTask, TaskResult
from geomill.stages.definitions import StageDefinition

NEXT = "next_stage_params"
INDEX = re.compile(r"[^\s\x00-\x1f]{1,100}")


@dataclass(frozen=True, slots=True)
class Planned:
    index: str
    parameters: dict[str, Any]


def planned(stage: StageDefinition, returned: Sequence[Any], previous: Iterable[TaskResult]) -> list[Planned]:
    """Return the tasks of a stage. `previous` are results that may pass on parameters. Raises `HandlerError` for an
    invalid task."""
    tasks = [_task(stage, place, task) for place, task in enumerate(returned)]
    _check_json(stage, tasks)
    if stage.single and len(tasks) != 1:
        raise _wrong(stage, f"it must have exactly one task, not {len(tasks)}")
    twice = [index for index, count in Counter(task.index for task in tasks).items() if count > 1]
    if twice:
        raise _wrong(stage, f"two tasks have the index {shown(twice[0])}")
    return _handed_over(stage, tasks, previous)


def _task(stage: StageDefinition, place: int, task: Any) -> Planned:
    index = str(place)
    if isinstance(task, StageTask):
        index, task = index if task.index is None else str(task.index), task.parameters
        _check_index(stage, index)
    if isinstance(task, BaseModel):
        task = task.model_dump(mode="json")
    if not isinstance(task, dict | Mapping):
        raise _wrong(stage, f"task {place} is not a mapping of parameters but {shown(task)}")
    return Planned(index, dict(task))


def _check_index(stage: StageDefinition, index: str) -> None:
    if not INDEX.fullmatch(index):
        raise _wrong(stage, f"{shown(index)} cannot be the index of a task", "use up to 100 characters without spaces")


def _check_json(stage: StageDefinition, tasks: list[Planned]) -> None:
    """Check all tasks at once, which is cheaper. Check them one by one only to find the error."""
    try:
        to_json([task.parameters for task in tasks])
    except NotJson:
        for task in tasks:
            try:
                to_json(task.parameters)
            except NotJson as error:
                raise _wrong(stage, f"the parameters of task {shown(task.index)} cannot be stored: {error}") from error
        raise


def _handed_over(stage: StageDefinition, tasks: list[Planned], previous: Iterable[TaskResult]) -> list[Planned]:
    """Pass the `next_stage_params` of task i of the previous stage to task i. Either all tasks get them or none."""
    handed = {result.task_index: params for result in previous if (params := result.next_stage_params) is not None}
    if not handed:
        return tasks
    before = stage.stage_number - 1
    indexes = [task.index for task in tasks]
    if lacking := [index for index in indexes if index not in handed]:
        raise _wrong(
            stage, f"{_tasks(lacking)} would get next_stage_params, but stage {before} gave none to that index"
        )
    if left := [index for index in handed if index not in set(indexes)]:
        raise _wrong(stage, f"stage {before} gave next_stage_params to {_tasks(left)}, which stage {before + 1} lacks")
    return [replace(task, parameters={**handed[task.index], **task.parameters}) for task in tasks]


def _tasks(indexes: Iterable[str]) -> str:
    names = [f"'{index}'" for index in indexes]
    shown_names = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"task {shown_names}" if len(names) == 1 else f"the tasks {shown_names}"


def _wrong(stage: StageDefinition, message: str, remedy: str = "") -> HandlerError:
    text = f"stage {stage.stage_number} ({stage.stage_name}): {message}" + (f"; {remedy}" if remedy else "")
    return HandlerError(text, retryable=False, code="invalid_stage")
