"""`geomill schedules`: start workflows at set times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.inputs import inputs_from_file, typed_inputs
from geomill.cli.printing import Json, print_json, print_table, when
from geomill.contract.schedules import ScheduleView
from geomill.domain.engine.schedule import CatchUp
from geomill.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Start workflows at set times.")

ScheduleId = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Id of the schedule.")]
Cron = Annotated[str | None, typer.Option(help="Cron expression: minute, hour, day of month, month, day of week.")]
Every = Annotated[int | None, typer.Option(metavar="SECONDS", help="Interval, instead of --cron.")]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; may be repeated.")
]
InputsFile = Annotated[Path | None, typer.Option("--inputs", metavar="FILE", help="JSON file with inputs.")]


@app.command()
def create(
    schedule_id: ScheduleId,
    workflow_id: Annotated[str, typer.Argument(metavar="WORKFLOW", help="Id of the workflow.")],
    cron: Cron = None,
    every: Every = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of --cron, such as Europe/Bern.")] = "UTC",
    catch_up: Annotated[CatchUp, typer.Option(help="Which missed firings to make up for.")] = CatchUp.LAST,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Number of its jobs that may run at once.")] = 1,
    inputs: Inputs = None,
    inputs_file: InputsFile = None,
    paused: Annotated[
        bool, typer.Option("--paused", help="Create it paused; start it with 'geomill schedules resume'.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Create a schedule that starts a workflow at set times. The inputs are checked now."""
    from_file = inputs_from_file(inputs_file)
    with gateway_or_database() as client:
        schedule = client.schedules.create(
            {
                "schedule_id": schedule_id,
                "workflow_id": workflow_id,
                "input_params": {**from_file, **typed_inputs(client.workflows.get(workflow_id), inputs or [])},
                "cron": cron,
                "interval_seconds": every,
                "timezone": timezone,
                "catch_up": catch_up.value,
                "max_concurrent": max_concurrent,
                "paused": paused,
            }
        )
    _print(schedule, as_json=as_json)


@app.command("list")
def list_schedules(as_json: Json = False) -> None:
    """List all schedules with their next due times."""
    schedules: list[ScheduleView] = []
    with gateway_or_database() as client:
        cursor = None
        while True:
            page = client.schedules.page(limit=1000, cursor=cursor)
            schedules += page.schedules
            cursor = page.next_cursor
            if cursor is None:
                break
    if as_json:
        print_json(schedules)
        return
    rows = [(s.schedule_id, s.workflow_id, _rule(s), _next(s), s.last_fired_at, s.last_error) for s in schedules]
    empty = "There are no schedules. 'geomill schedules create --help' shows how to create one."
    print_table(("schedule", "workflow", "when", "next", "last fired", "trouble"), rows, empty=empty)


@app.command()
def show(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Show one schedule with its next due times and its latest jobs."""
    with gateway_or_database() as client:
        schedule = client.schedules.get(schedule_id)
        jobs = client.schedules.jobs(schedule_id, limit=10).jobs
    if as_json:
        print_json({**schedule.model_dump(mode="json"), "jobs": [job.model_dump(mode="json") for job in jobs]})
        return
    typer.echo(f"{schedule.schedule_id}  {schedule.workflow_id}  {_rule(schedule)}")
    typer.echo(f"  due: {', '.join(map(when, schedule.due_times)) or _next(schedule)}")
    for job in jobs:
        typer.echo(f"  job {job.job_id}  {job.status}  {when(job.created_at or job.submitted_at)}")


@app.command()
def change(
    schedule_id: ScheduleId,
    cron: Cron = None,
    every: Every = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Time zone of --cron.")] = None,
    catch_up: Annotated[CatchUp | None, typer.Option(help="Which missed firings to make up for.")] = None,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="Number of its jobs that may run at once.")] = None,
    inputs: Inputs = None,
    inputs_file: InputsFile = None,
    as_json: Json = False,
) -> None:
    """Change a schedule. What you do not name stays as it is; inputs are replaced as a whole."""
    named: dict[str, Any] = {
        "cron": cron,
        "interval_seconds": every,
        "timezone": timezone,
        "catch_up": catch_up.value if catch_up else None,
        "max_concurrent": max_concurrent,
    }
    changes = {name: value for name, value in named.items() if value is not None}
    with gateway_or_database() as client:
        if inputs or inputs_file:
            workflow = client.workflows.get(client.schedules.get(schedule_id).workflow_id)
            changes["input_params"] = {**inputs_from_file(inputs_file), **typed_inputs(workflow, inputs or [])}
        if not changes:
            raise InputError("there is nothing to change", remedy="give at least one option")
        _print(client.schedules.change(schedule_id, **changes), as_json=as_json)


@app.command()
def pause(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Pause a schedule. Its running jobs go on."""
    with gateway_or_database() as client:
        _print(client.schedules.change(schedule_id, paused=True), as_json=as_json)


@app.command()
def resume(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Resume a schedule from its next due time on. Firings missed while it was paused are not made up for."""
    with gateway_or_database() as client:
        _print(client.schedules.change(schedule_id, paused=False), as_json=as_json)


@app.command()
def delete(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Delete a schedule. Its jobs stay."""
    with gateway_or_database() as client:
        client.schedules.delete(schedule_id)
    if as_json:
        print_json({"schedule_id": schedule_id, "deleted": True})
    else:
        typer.echo(f"deleted {schedule_id}")


@app.command()
def fire(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Start a job of the schedule now. The due times do not change."""
    with gateway_or_database() as client:
        job = client.schedules.run(schedule_id)
    if as_json:
        print_json({"schedule_id": schedule_id, "job_id": job.job_id, "status": job.status})
    else:
        typer.echo(f"queued {job.job_id}")


def _print(schedule: ScheduleView, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule)
    else:
        typer.echo(f"{schedule.schedule_id}: {_next(schedule)}")


def _rule(schedule: ScheduleView) -> str:
    return f"{schedule.cron} ({schedule.timezone})" if schedule.cron else f"every {schedule.interval_seconds} s"


def _next(schedule: ScheduleView) -> str:
    if schedule.paused:
        return "paused"
    return f"next {schedule.next_due_at:%Y-%m-%d %H:%M:%S %Z}" if schedule.next_due_at else "never due again"
