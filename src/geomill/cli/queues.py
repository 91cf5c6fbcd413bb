"""`geomill queues`: what waits, what was given up, and sending it again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from geomill.cli import context
from geomill.engine.redrive import redrive as redrive_letters
from geomill.errors import InputError, NotFoundError, nearest
from geomill.queues.broker import Depth
from geomill.queues.postgres_broker import PostgresBroker, overview
from geomill.store.pool import Connection, Pool, open_pool

app = typer.Typer(no_args_is_help=True, help="See what waits on the queues, and send dead letters again.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Queue = Annotated[str, typer.Argument(metavar="QUEUE")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]
Result = TypeVar("Result")


@app.command("list")
def list_queues(as_json: Json = False) -> None:
    """Every queue with what waits, what is leased and what is dead."""

    async def work(conn: Connection, _broker: PostgresBroker) -> dict[str, Depth]:
        return await _known(conn)

    found = _with_database(work)
    if as_json:
        _print_json([{"queue_name": name, **asdict(depth)} for name, depth in found.items()])
        return
    table = Table("queue", "waiting", "scheduled", "leased", "oldest", "dead letters", box=None)
    for name, depth in found.items():
        counts = map(str, (depth.waiting, depth.scheduled, depth.leased))
        table.add_row(name, *counts, _age(depth.oldest_seconds), str(depth.dead))
    Console().print(table)


@app.command()
def peek(queue: Queue, limit: Limit = 20, as_json: Json = False) -> None:
    """The messages that are received next. Nothing is changed."""

    async def work(conn: Connection, broker: PostgresBroker) -> list[Any]:
        await _check(conn, queue)
        return [asdict(message) for message in await broker.peek(queue, limit)]

    found = _with_database(work)
    if as_json:
        _print_json(found)
    for message in [] if as_json else found:
        head = f"{message['message_id']}  priority {message['priority']}  since {_time(message['enqueued_at'])}"
        typer.echo(f"{head}\n  {_short(message['body'])}")


@app.command("dead-letters")
def dead_letters(
    queue: Annotated[str | None, typer.Argument(metavar="QUEUE", help="All queues when absent.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Messages that nobody could handle, the latest first, each with the reason."""

    async def work(conn: Connection, broker: PostgresBroker) -> list[Any]:
        if queue is not None:
            await _check(conn, queue)
        return [asdict(letter) for letter in await broker.peek_dead_letters(queue, limit)]

    found = _with_database(work)
    if as_json:
        _print_json(found)
    for letter in [] if as_json else found:
        typer.echo(f"{letter['message_id']}  {letter['queue_name']}  {_time(letter['dead_lettered_at'])}")
        typer.echo(f"  {letter['reason']}: {letter['description']}\n  {_short(letter['body'])}")


@app.command()
def redrive(
    queue: Queue,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Message to send again; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters of the queue.")] = False,
    as_json: Json = False,
) -> None:
    """Send dead letters again. A refused submission becomes the job that it asked for, under its id."""
    if bool(ids) is everything:
        raise InputError("either --id or --all is needed", remedy="name messages with --id, or take --all of them")

    async def work(conn: Connection, broker: PostgresBroker) -> list[str]:
        await _check(conn, queue)
        sent = [letter.message_id for letter in await redrive_letters(conn, broker, queue, ids or None)]
        if missing := sorted(set(ids or ()) - set(sent)):
            raise NotFoundError(
                f"{len(sent)} sent; there is no dead letter {', '.join(missing)} on '{queue}', or it waits already",
                remedy=f"run 'geomill queues dead-letters {queue}'",
            )
        return sent

    sent = _with_database(work)
    if as_json:
        _print_json({"queue_name": queue, "sent": sent})
    else:
        typer.echo(f"{len(sent)} sent again to {queue}")


async def _known(conn: Connection) -> dict[str, Depth]:
    """Those of the settings, and those that have something."""
    settings = context.settings().queue
    found = await overview(conn)
    return {name: found.get(name, Depth()) for name in (settings.job_queue_name, *settings.task_queues)} | found


async def _check(conn: Connection, queue: str) -> None:
    known = await _known(conn)
    if queue not in known:
        raise NotFoundError(f"there is no queue '{queue}'", remedy=nearest(queue, known))


def _with_database(work: Callable[[Connection, PostgresBroker], Awaitable[Result]]) -> Result:
    async def main(url: str) -> Result:
        async with open_pool(url, size=2) as pool, pool.connection() as conn:
            return await work(conn, _broker(pool))

    with context.ready_database() as url:
        return asyncio.run(main(url))


def _broker(pool: Pool) -> PostgresBroker:
    return PostgresBroker(pool, consumer="cli", task_queues=context.settings().queue.task_queues)


def _print_json(value: Iterable[Any]) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_time))


def _time(moment: datetime) -> str:
    return moment.isoformat()


def _short(body: Any) -> str:
    text = json.dumps(body, ensure_ascii=False)
    return text if len(text) <= 200 else text[:199] + "…"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
