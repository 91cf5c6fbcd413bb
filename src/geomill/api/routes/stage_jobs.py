"""Routes of stage jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import Field

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.stage_jobs import (
    job_type_view,
    stage_accepted,
    stage_job_details,
    stage_job_summary,
    stage_task_view,
)
from geomill.contract.inputs import ApiInput, Text
from geomill.contract.stage_jobs import (
    JobType,
    OpenCircuit,
    StageAccepted,
    StageJobDetails,
    StageJobPage,
    StageOptions,
    StageTaskPage,
    StageTaskView,
)
from geomill.domain.engine.circuit import CircuitState
from geomill.domain.engine.stage_job import StageJobOrder, StageStatus, workflow_id
from geomill.stages import status, tasks
from geomill.stages.submission import submit
from geomill.store import circuits, stage_jobs

router = APIRouter(prefix="/api/jobs", tags=["stage jobs"], responses=problem_responses(503))

Name = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]
TaskId = Annotated[str, Path(max_length=200, pattern=r"^[^\x00]+$")]
MOST_STAGES = 100


class StageJobFilters(ApiInput):
    """Filters of the list of stage jobs."""

    job_type: Text | None = None
    status: StageStatus | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    cursor: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="`next_cursor` of the previous page"
    )


class StageTaskFilters(ApiInput):
    stage: Annotated[int, Field(ge=1, le=MOST_STAGES)] = 1
    after: Annotated[int, Field(ge=-1, le=2**31 - 1)] = Field(
        default=-1, description="`next_after` of the previous page"
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class TaskOptions(ApiInput):
    job_id: Text | None = Field(default=None, description="The job, if several have a task with this id")


@router.post(
    "/submit/{job_type}",
    status_code=202,
    summary="Submit a stage job",
    responses={
        200: {"model": StageAccepted, "description": "The job exists already"},
        **problem_responses(400, 404, 413),
    },
)
async def submit_stage_job(
    gateway: TheGateway,
    principal: ThePrincipal,
    job_type: Name,
    options: Annotated[StageOptions, Query()],
    response: Response,
    parameters: Annotated[dict[str, Any] | None, Body()] = None,
) -> StageAccepted:
    """The body holds the parameters. The same type and parameters are the same job: if it runs or has completed, the
    answer is 200. After a failure or a cancellation it begins again, as a new attempt with the same id."""
    terms = {**dict(options), "on_behalf_of": principal.named(options.on_behalf_of)}
    order = StageJobOrder(job_type=job_type, parameters=parameters or {}, submitted_by=principal.subject, **terms)
    async with gateway.connection() as conn:
        submitted = await submit(conn, gateway.stage_jobs, gateway.workflow_registry, gateway.job_queue, order)
    response.status_code = 202 if submitted.is_new else 200
    response.headers["Location"] = f"/api/jobs/status/{submitted.run.job_id}"
    return stage_accepted(submitted, gateway.job_queue)


@router.get("/types", summary="List the job types")
async def list_job_types(gateway: TheGateway) -> list[JobType]:
    """Includes the JSON Schema of their parameters and open circuits."""
    async with gateway.connection() as conn:
        all_circuits = await circuits.read(conn)
    opened = {
        circuit.handler: OpenCircuit.model_validate(circuit, from_attributes=True)
        for circuit in all_circuits
        if circuit.state is CircuitState.OPEN
    }
    return [job_type_view(job, opened) for job in gateway.stage_jobs.values()]


@router.get("", summary="List stage jobs, the newest first")
async def list_stage_jobs(gateway: TheGateway, filters: Annotated[StageJobFilters, Query()]) -> StageJobPage:
    """Each job is shown with its latest attempt."""
    before = cursors.decode(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        listed = await stage_jobs.page(
            conn,
            gateway.job_queue,
            job_type=filters.job_type,
            status=filters.status,
            limit=filters.limit + 1,
            before=before,
        )
    page, more = listed[: filters.limit], len(listed) > filters.limit
    return StageJobPage(
        jobs=[stage_job_summary(attempt) for attempt in page],
        next_cursor=cursors.encode(page[-1].run.submitted_at, page[-1].run.job_id) if more else None,
    )


@router.get("/status/{job_id}", summary="Get the status of a stage job", responses=problem_responses(404))
async def get_stage_job(gateway: TheGateway, job_id: Name) -> StageJobDetails:
    """Includes each stage and earlier attempts."""
    async with gateway.connection() as conn:
        (latest, *_) = await stage_jobs.get(conn, gateway.job_queue, job_id)
        name = workflow_id(latest.run.job_type)
        planned = gateway.workflow_registry.get(name) if name in gateway.workflow_registry else None
        return stage_job_details(await status.view(conn, gateway.job_queue, job_id, planned))


@router.get("/status/{job_id}/tasks", summary="List the tasks of a stage", responses=problem_responses(404))
async def get_stage_tasks(
    gateway: TheGateway, job_id: Name, filters: Annotated[StageTaskFilters, Query()]
) -> StageTaskPage:
    """Lists the tasks of the latest attempt that have begun, in order."""
    async with gateway.connection() as conn:
        (latest, *_) = await stage_jobs.get(conn, gateway.job_queue, job_id)
        plan = await tasks.plan_of(conn, gateway.desk.storage, latest, filters.stage)
        listed = await tasks.page(conn, latest, plan, after=filters.after, limit=filters.limit + 1)
    page, more = listed[: filters.limit], len(listed) > filters.limit
    return StageTaskPage(tasks=[stage_task_view(task) for task in page], next_after=page[-1].position if more else None)


@router.get("/tasks/{task_id}", summary="Get a task of a stage job", responses=problem_responses(404, 409))
async def get_stage_task(
    gateway: TheGateway, task_id: TaskId, options: Annotated[TaskOptions, Query()]
) -> StageTaskView:
    """The id is `task_id` or `engine_task_id` of the list of tasks. Jobs whose ids begin alike may have tasks with the
    same id; then the answer is 409 unless `job_id` says which."""
    async with gateway.connection() as conn:
        task = await tasks.find(conn, gateway.job_queue, gateway.desk.storage, task_id, options.job_id)
    return stage_task_view(task)
