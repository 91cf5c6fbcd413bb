"""`geomill queues`: inspect queues and dead letters, and send dead letters again."""

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

app = typer.Typer(no_args_is_help=True, help="Inspect the queues, and send dead letters again.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Number of messages at most.")]
Result = TypeVar("Result")


@app.command("list")
def list_queues(as_json: Json = False) -> None:
    """List all queues with their numbers of waiting, scheduled, leased and dead messages."""

    async def work(conn: Connection, _broker: PostgresBroker) -> dict[str, Depth]:
        return await _queue_depths(conn)

    depths = _with_database(work)
    if as_json:
        _print_json([{"queue_name": name, **asdict(depth)} for name, depth in depths.items()])
        return
    table = Table("queue", "waiting", "scheduled", "leased", "oldest", "dead letters", box=None)
    for name, depth in depths.items():
        counts = map(str, (depth.waiting, depth.scheduled, depth.leased))
        table.add_row(name, *counts, _age(depth.oldest_seconds), str(depth.dead))
    Console().print(table)


@app.command()
def peek(queue: Queue, limit: Limit = 20, as_json: Json = False) -> None:
    """Show the messages that will be received next, without taking them."""

    async def work(conn: Connection, broker: PostgresBroker) -> list[Any]:
        await _require_queue(conn, queue)
        return [asdict(message) for message in await broker.peek(queue, limit)]

    messages = _with_database(work)
    if as_json:
        _print_json(messages)
    for message in [] if as_json else messages:
        head = f"{message['message_id']}  priority {message['priority']}  since {_time(message['enqueued_at'])}"
        typer.echo(f"{head}\n  {_short(message['body'])}")


@app.command("dead-letters")
def dead_letters(
    queue: Annotated[
        str | None, typer.Argument(metavar="QUEUE", help="Name of the queue. Default: all queues.")
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List dead letters, the latest first, each with its reason."""

    async def work(conn: Connection, broker: PostgresBroker) -> list[Any]:
        if queue is not None:
            await _require_queue(conn, queue)
        return [asdict(letter) for letter in await broker.peek_dead_letters(queue, limit)]

    letters = _with_database(work)
    if as_json:
        _print_json(letters)
    for letter in [] if as_json else letters:
        typer.echo(f"{letter['message_id']}  {letter['queue_name']}  {_time(letter['dead_lettered_at'])}")
        typer.echo(f"  {letter['reason']}: {letter['description']}\n  {_short(letter['body'])}")


@app.command()
def redrive(
    queue: Queue,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Id of a message to send again; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Send all dead letters of the queue again.")] = False,
    as_json: Json = False,
) -> None:
    """Send dead letters again. A dead submission becomes a job with the id it asked for."""
    if bool(ids) is everything:
        raise InputError("exactly one of --id and --all is required", remedy="name messages with --id, or give --all")

    async def work(conn: Connection, broker: PostgresBroker) -> list[str]:
        await _require_queue(conn, queue)
        sent = [letter.message_id for letter in await redrive_letters(conn, broker, queue, ids or None)]
        if missing := sorted(set(ids or ()) - set(sent)):
            raise NotFoundError(
                f"{len(sent)} sent; '{queue}' has no dead letter {', '.join(missing)}, or it was already sent again",
                remedy=f"run 'geomill queues dead-letters {queue}'",
            )
        return sent

    sent = _with_database(work)
    if as_json:
        _print_json({"queue_name": queue, "sent": sent})
    else:
        typer.echo(f"{len(sent)} dead letters sent again to {queue}")


async def _queue_depths(conn: Connection) -> dict[str, Depth]:
    """Return the depths of the queues in the settings and of all other queues that hold messages."""
    settings = context.settings().queue
    depths = await overview(conn)
    return {name: depths.get(name, Depth()) for name in (settings.job_queue_name, *settings.task_queues)} | depths


async def _require_queue(conn: Connection, queue: str) -> None:
    depths = await _queue_depths(conn)
    if queue not in depths:
        raise NotFoundError(f"there is no queue '{queue}'", remedy=nearest(queue, depths))


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
