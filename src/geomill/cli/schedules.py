"""`geomill schedules`: start workflows at set times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from geomill.cli import context
from geomill.cli.inputs import inputs_from_file, inputs_from_options
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.schedule import CatchUp, Schedule
from geomill.engine.maintenance.schedules import Scheduler, set_paused
from geomill.engine.maintenance.schedules import create as create_schedule
from geomill.engine.submit import check_plain
from geomill.store import schedules as store
from geomill.store.pool import Connection

app = typer.Typer(no_args_is_help=True, help="Start workflows at set times.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ScheduleId = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Id of the schedule.")]


@app.command()
def create(
    schedule_id: ScheduleId,
    workflow_id: Annotated[str, typer.Argument(metavar="WORKFLOW", help="Id of the workflow.")],
    cron: Annotated[
        str | None, typer.Option(help="Cron expression: minute, hour, day of month, month, day of week.")
    ] = None,
    every: Annotated[int | None, typer.Option(metavar="SECONDS", help="Interval, instead of --cron.")] = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of --cron, such as Europe/Bern.")] = "UTC",
    catch_up: Annotated[CatchUp, typer.Option(help="Which missed firings to make up for.")] = CatchUp.LAST,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Number of its jobs that may run at once.")] = 1,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; may be repeated.")
    ] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", metavar="FILE", help="JSON file with inputs.")] = None,
    paused: Annotated[
        bool, typer.Option("--paused", help="Create it paused; start it with 'geomill schedules resume'.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Create a schedule that starts a workflow at set times. The inputs are checked now."""
    workflow_registry = context.workflow_registry(context.handlers())
    workflow = workflow_registry.get(workflow_id)
    input_params = {**inputs_from_file(inputs_file), **inputs_from_options(workflow, inputs or [])}
    # before a database is started or created
    check_plain(workflow_registry, JobQueueMessage(workflow_id=workflow_id, input_params=input_params))

    async def work(conn: Connection) -> Schedule:
        return await create_schedule(
            conn,
            schedule_id=schedule_id,
            workflow_id=workflow_id,
            input_params=input_params,
            cron=cron,
            interval_seconds=every,
            timezone=timezone,
            catch_up=catch_up,
            max_concurrent=max_concurrent,
            paused=paused,
        )

    _print(context.with_database(work), as_json=as_json)


@app.command("list")
def list_schedules(as_json: Json = False) -> None:
    """List all schedules with their next due times."""
    schedules = context.with_database(store.everything)
    if as_json:
        _print_json([schedule.model_dump(mode="json") for schedule in schedules])
    elif schedules:
        Console().print(_table(schedules))
    else:
        typer.echo("There are no schedules. 'geomill schedules create --help' shows how to create one.")


@app.command()
def pause(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Pause a schedule. Its running jobs go on."""
    _print(context.with_database(lambda conn: set_paused(conn, schedule_id, paused=True)), as_json=as_json)


@app.command()
def resume(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Resume a schedule from its next due time on. Firings missed while it was paused are not made up for."""
    _print(context.with_database(lambda conn: set_paused(conn, schedule_id, paused=False)), as_json=as_json)


@app.command()
def delete(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Delete a schedule. Its jobs stay."""
    context.with_database(lambda conn: store.delete(conn, schedule_id))
    if as_json:
        _print_json({"schedule_id": schedule_id, "deleted": True})
    else:
        typer.echo(f"deleted {schedule_id}")


@app.command()
def fire(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Start a job of the schedule now. The due times do not change."""
    scheduler = Scheduler(context.workflow_registry(context.handlers()), context.settings().queue.job_queue_name)
    job_id = context.with_database(lambda conn: scheduler.fire(conn, schedule_id)).job_id
    if as_json:
        _print_json({"schedule_id": schedule_id, "job_id": job_id, "status": "queued"})
    else:
        typer.echo(f"queued {job_id}")


def _print(schedule: Schedule, *, as_json: bool) -> None:
    if as_json:
        _print_json(schedule.model_dump(mode="json"))
    else:
        typer.echo(f"{schedule.schedule_id}: {_next(schedule)}")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _next(schedule: Schedule) -> str:
    if schedule.paused:
        return "paused"
    return f"next {schedule.next_due_at:%Y-%m-%d %H:%M:%S %Z}" if schedule.next_due_at else "never due again"


def _table(schedules: list[Schedule]) -> Table:
    table = Table(Column("schedule", no_wrap=True), "workflow", "when", "next", "last fired", "trouble", box=None)
    for schedule in schedules:
        when = f"{schedule.cron} ({schedule.timezone})" if schedule.cron else f"every {schedule.interval_seconds} s"
        last = f"{schedule.last_fired_at:%Y-%m-%d %H:%M:%S}" if schedule.last_fired_at else ""
        table.add_row(
            schedule.schedule_id, schedule.workflow_id, when, _next(schedule), last, schedule.last_error or ""
        )
    return table
