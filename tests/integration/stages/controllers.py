"""Stage jobs for the tests. Handlers tell by their parameters what they are to do."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from geomill.sdk import HandlerContext, HandlerError, register_handler
from geomill.stages import (
    CircuitBreaker,
    JobExecutionContext,
    RetryPolicy,
    StageController,
    StageDefinition,
    StageTask,
    TaskResult,
    WorkflowDefinition,
    plain_stage_job,
    stage_job,
)

ONCE = RetryPolicy(max_attempts=1)


@register_handler("test.work")
async def work(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
    """Sleeps, fails, hands over or returns much, as it is told."""
    params = ctx.params
    await asyncio.sleep(params.get("seconds", 0))
    if params.get("fail"):
        raise HandlerError(str(params["fail"]), retryable=params.get("retryable", False), code="told_to")
    output = {key: params[key] for key in ("value", "next_stage_params") if key in params}
    return {**output, "text": "x" * params.get("characters", 0)} if "characters" in params else output


DOWN: set[str] = set()
"""Services that do not answer."""


@register_handler("test.call")
async def call(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
    """Calls a service that may be down."""
    if ctx.params["service"] in DOWN:
        raise HandlerError("the service does not answer", code="down")
    return {"answered": True}


def stages(job_type: str, count: int, **more: Any) -> WorkflowDefinition:
    return WorkflowDefinition(
        job_type=job_type,
        stages=[
            StageDefinition(
                stage_number=number,
                stage_name=f"stage {number}",
                **{"task_type": "test.work", "retry": ONCE, **more},
            )
            for number in range(1, count + 1)
        ],
    )


class Widths(BaseModel):
    model_config = ConfigDict(extra="forbid")

    widths: list[int] = [2, 3, 1]
    seconds: float = 0.0
    fail_stage: int = 0
    fail_index: int = 0
    raise_in: str = ""
    note: str = ""


class Counting(StageController):
    """Creates as many tasks as the parameters say; each adds one to the sum of the stage before."""

    Parameters = Widths

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        parameters = context.parameters
        if parameters.raise_in == f"plan {stage}":
            raise ValueError("told to")
        before = context.stage_results[stage - 1]["sum"] if stage > 1 else 0
        tasks: list[dict[str, Any]] = [
            {"value": before + 1, "seconds": parameters.seconds} for _ in range(parameters.widths[stage - 1])
        ]
        if parameters.fail_stage == stage:
            tasks[parameters.fail_index]["fail"] = "this one fails"
        return tasks

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        values = [result.result_data["value"] for result in results if result.success]
        return {"sum": sum(values), "tasks": len(results), "failed": [r.task_index for r in results if not r.success]}


@stage_job("counting", workflow=stages("counting", 3), isolated=False)
class CountingJob(Counting):
    """Three stages."""


@stage_job("wide", workflow=stages("wide", 2), isolated=False)
class WideJob(Counting):
    """Two stages."""


@stage_job("partial", workflow=stages("partial", 2, allow_partial=True), isolated=False)
class PartialJob(Counting):
    """Tasks may fail."""


@stage_job("tolerant", workflow=stages("tolerant", 1, allow_partial="1"), max_parallel_tasks=2, isolated=False)
class TolerantJob(Counting):
    """One task may fail, and two run at once."""


class Handing(BaseModel):
    givers: list[str] = ["a", "b"]
    takers: list[str] = ["b", "a"]


@stage_job("handing", workflow=stages("handing", 2), isolated=False)
class HandingJob(StageController):
    """Each task of the first stage hands its own name to its counterpart."""

    Parameters = Handing

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        if stage == 1:
            return [
                StageTask({"next_stage_params": {"value": f"from {name}"}}, name) for name in context.parameters.givers
            ]
        return [StageTask({}, name) for name in context.parameters.takers]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        return {result.task_index: result.result_data.get("value") for result in results}


class Tiles(BaseModel):
    bad: str = ""
    seconds: float = 0.0


@stage_job(
    "tiles",
    workflow=stages("tiles", 1, retry=RetryPolicy(max_attempts=2, backoff="fixed", initial_delay_seconds=0.01)),
    isolated=False,
)
class TilesJob(StageController):
    """Two tasks with names of their own. The bad one fails at each of two attempts."""

    Parameters = Tiles

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        order = context.parameters
        tasks = {name: {"seconds": order.seconds} for name in ("tile_x0_y9", "tile_x0_y10")}
        tasks.get(order.bad, {}).update({"fail": "no pixels", "retryable": True})
        return [StageTask(parameters, name) for name, parameters in tasks.items()]


@stage_job("large", workflow=stages("large", 2), isolated=False)
class LargeJob(StageController):
    """Results of more than a megabyte: of a task, and of a stage."""

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        if stage == 1:
            return [{"characters": 1_200_000}, {"value": 1}]
        paths = [result.large_metadata_path for result in context.previous_results]
        lengths = [len(result.load().get("text", "")) for result in context.previous_results]
        return [{"value": {"paths": paths, "lengths": lengths, "whole": len(context.stage_results[1]["all"])}}]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        if stage == 1:
            return {"all": "".join(result.load().get("text", "") for result in results)}
        return {"value": results[0].result_data["value"]}


@stage_job("bulky", workflow=stages("bulky", 1), isolated=False)
class BulkyJob(StageController):
    """A plan of more than a megabyte."""

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        return [StageTask({"value": len(name), "ballast": "x" * 600_000}, name) for name in ("left", "right")]


CALLS = WorkflowDefinition(
    job_type="calling",
    stages=[
        StageDefinition(
            stage_number=1,
            stage_name="call",
            task_type="test.call",
            retry=RetryPolicy(max_attempts=30, backoff="fixed", initial_delay_seconds=0.05),
            circuit_breaker=CircuitBreaker(failures=5, open_seconds=0.5),
        )
    ],
)


@stage_job("calling", workflow=CALLS, isolated=False)
class CallingJob(StageController):
    """Tasks that call a service."""

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        return [{"service": context.parameters["service"]} for _ in range(context.parameters.get("tasks", 1))]


@register_handler("test.ids")
async def ids(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
    """Returns its ids and the names of its parameters."""
    return {"task_id": ctx.task_id, "attempt_id": ctx.attempt_id, "names": sorted(ctx.params)}


@stage_job("telling", workflow=stages("telling", 1, task_type="test.ids"), isolated=False)
class TellingJob(StageController):
    """Its tasks tell their ids."""

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        return [StageTask({"value": 1}, f"tile_{place}") for place in range(2)]


@plain_stage_job("plain", isolated=False)
class PlainJob:
    """Stages as dicts and static methods."""

    stages = (
        {"number": 1, "name": "first", "task_type": "test.work", "parallelism": "single"},
        {"number": 2, "name": "second", "task_type": "test.work", "parallelism": "fan_out"},
    )

    @staticmethod
    def validate_job_parameters(params: dict[str, Any]) -> dict[str, Any]:
        if not params["blob_name"]:
            raise ValueError("blob_name must not be empty")
        return {"blob_name": params["blob_name"], "tiles": params.get("tiles", 2)}

    @staticmethod
    def create_tasks_for_stage(
        stage: int, job_params: dict[str, Any], job_id: str, previous_results: list[dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        if stage == 1:
            return [
                {
                    "task_id": f"{job_id[:8]}-s1-list-tiles",
                    "task_type": "test.work",
                    "parameters": {"value": [f"tile_{number}" for number in range(job_params["tiles"])]},
                }
            ]
        assert previous_results is not None
        return [
            {"task_id": f"{job_id[:8]}-s2-{tile}", "task_type": "test.work", "parameters": {"value": tile}}
            for tile in previous_results[0]["result"]["value"]
        ]


class Paged(StageController):
    """Creates as many tasks as the parameters say. Each hands over its name, and the second stage reads the results of
    the first."""

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[StageTask]:
        names = [f"t{place}" for place in range(context.parameters["tasks"])]
        if stage == 1:
            size = {"characters": context.parameters.get("characters", 0)}
            return [StageTask({"next_stage_params": {"value": name}, **size}, name) for name in names]
        assert [result.task_index for result in context.previous_results] == names
        assert context.previous_results[-1].task_id == f"{context.job_id[:8]}-s1-{names[-1]}"
        return [StageTask({}, name) for name in reversed(names)]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        if stage == 1:
            return {"tasks": len(results)}
        return {"values": [result.result_data["value"] for result in results]}


@stage_job("paged", workflow=stages("paged", 2))
class PagedJob(Paged):
    """Its code runs in a process of its own."""


@stage_job("paged_here", workflow=stages("paged_here", 2), isolated=False)
class PagedHereJob(Paged):
    """Its code runs in the worker."""


class Holding(BaseModel):
    folder: str
    hold_at: str


def _arrive(params: dict[str, Any], place: str) -> Path | None:
    """Return the file that opens the gate, if the job is held at this place. The file it leaves names the process that
    waits."""
    if params["hold_at"] != place:
        return None
    folder = Path(params["folder"])
    (folder / f"{place}.{os.getpid()}").touch()
    return folder / "open"


@register_handler("test.held")
async def pass_gate(ctx: HandlerContext[dict[str, Any]]) -> dict[str, Any]:
    gate = _arrive(ctx.params, f"tasks{ctx.params['stage']}") if ctx.params["value"] == 0 else None
    while gate and not gate.exists():  # noqa: ASYNC110  another process opens it
        await asyncio.sleep(0.01)
    params = {name: ctx.params[name] for name in ("folder", "hold_at")}
    return {"value": ctx.params["value"] + 1, "given": params}


@stage_job("held", workflow=stages("held", 2, task_type="test.held"), isolated=False)
class HeldJob(StageController):
    """Waits at one of its borders until a file is there."""

    Parameters = Holding

    def create_stage_tasks(self, stage: int, context: JobExecutionContext) -> Sequence[Mapping[str, Any]]:
        params = context.parameters.model_dump()
        self._hold(params, f"plan{stage}")
        width = 3 if stage == 1 else context.stage_results[1]["sum"]
        return [{**params, "stage": stage, "value": value} for value in range(width)]

    def aggregate_stage_results(self, stage: int, results: Sequence[TaskResult]) -> Mapping[str, Any]:
        self._hold(results[0].load()["given"], f"aggregate{stage}")
        return {"sum": sum(result.result_data["value"] for result in results)}

    def _hold(self, params: dict[str, Any], place: str) -> None:
        gate = _arrive(params, place)
        while gate and not gate.exists():
            time.sleep(0.01)
