"""`geomill schedules`: workflows that start by themselves."""

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

app = typer.Typer(no_args_is_help=True, help="Start workflows at given times.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ScheduleId = Annotated[str, typer.Argument(metavar="SCHEDULE")]


@app.command()
def create(
    schedule_id: ScheduleId,
    workflow_id: Annotated[str, typer.Argument(metavar="WORKFLOW")],
    cron: Annotated[str | None, typer.Option(help="Minute, hour, day of month, month, day of week.")] = None,
    every: Annotated[int | None, typer.Option(metavar="SECONDS", help="Instead of --cron: an interval.")] = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of --cron, such as Europe/Bern.")] = "UTC",
    catch_up: Annotated[CatchUp, typer.Option(help="What to do with firings that were missed.")] = CatchUp.LAST,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Jobs of this schedule at once.")] = 1,
    inputs: Annotated[list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="One input.")] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", metavar="FILE", help="JSON file of inputs.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="It begins with 'geomill schedules resume'.")] = False,
    as_json: Json = False,
) -> None:
    """Start a workflow at given times. The inputs are checked now."""
    catalogue = context.catalogue(context.handlers())
    workflow = catalogue.get(workflow_id)
    given = {**inputs_from_file(inputs_file), **inputs_from_options(workflow, inputs or [])}
    # before a database is started or made
    check_plain(catalogue, JobQueueMessage(workflow_id=workflow_id, input_params=given))

    async def work(conn: Connection) -> Schedule:
        return await create_schedule(
            conn,
            schedule_id=schedule_id,
            workflow_id=workflow_id,
            input_params=given,
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
    """Every schedule with its next due time."""
    found = context.with_database(store.everything)
    if as_json:
        _print_json([schedule.model_dump(mode="json") for schedule in found])
    elif found:
        Console().print(_table(found))
    else:
        typer.echo("no schedules yet; 'geomill schedules create --help' says how to make one")


@app.command()
def pause(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Fire no more until resumed. Jobs under way go on."""
    _print(context.with_database(lambda conn: set_paused(conn, schedule_id, paused=True)), as_json=as_json)


@app.command()
def resume(schedule_id: ScheduleId, as_json: Json = False) -> None:
    """Fire again, from the next due time on: what was due in between is not made up for."""
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
    """Start a job now, beside the due times, which stay as they are."""
    scheduler = Scheduler(context.catalogue(context.handlers()), context.settings().queue.job_queue_name)
    job_id = context.with_database(lambda conn: scheduler.fire(conn, schedule_id))
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


def _table(found: list[Schedule]) -> Table:
    table = Table(Column("schedule", no_wrap=True), "workflow", "when", "next", "last fired", "trouble", box=None)
    for one in found:
        when = f"{one.cron} ({one.timezone})" if one.cron else f"every {one.interval_seconds} s"
        last = f"{one.last_fired_at:%Y-%m-%d %H:%M:%S}" if one.last_fired_at else ""
        table.add_row(one.schedule_id, one.workflow_id, when, _next(one), last, one.last_error or "")
    return table
