"""`geomill queues`: inspect queues and dead letters, send dead letters again, or discard them."""

from __future__ import annotations

from typing import Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, age, print_json, print_table, short
from geomill.contract.queues import Discard, Redrive
from geomill.errors import InputError, NotFoundError

app = typer.Typer(no_args_is_help=True, help="Inspect the queues, and send dead letters again.")

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Number of messages at most.")]
Ids = Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="Id of a message; may be repeated.")]
Everything = Annotated[bool, typer.Option("--all", help="All dead letters of the queue.")]


@app.command("list")
def list_queues(as_json: Json = False) -> None:
    """List all queues with their messages, dead letters and the processes that serve them."""
    with gateway_or_database() as client:
        queues = client.queues.all()
    if as_json:
        print_json(queues)
        return
    rows = [
        (q.queue_name, q.waiting, q.scheduled, q.leased, age(q.oldest_seconds), q.dead, q.consumers) for q in queues
    ]
    columns = ("queue", "waiting", "scheduled", "leased", "oldest", "dead letters", "served by")
    print_table(columns, rows, empty="There are no queues.")


@app.command()
def peek(queue: Queue, limit: Limit = 20, as_json: Json = False) -> None:
    """Show the messages that will be received next, without taking them."""
    with gateway_or_database() as client:
        messages = client.queues.peek(queue, limit=limit).messages
    if as_json:
        print_json(messages)
        return
    for message in messages:
        typer.echo(f"{message.message_id}  priority {message.priority}  since {message.enqueued_at.isoformat()}")
        typer.echo(f"  {short(message.body)}")


@app.command("dead-letters")
def dead_letters(
    queue: Annotated[
        str | None, typer.Argument(metavar="QUEUE", help="Name of the queue. Default: all queues.")
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List dead letters, the latest first, each with its reason."""
    with gateway_or_database() as client:
        if queue is not None:
            client.queues.get(queue)  # raises, with the nearest name
        letters = client.queues.dead_letters(queue=queue, limit=limit).dead_letters
    if as_json:
        print_json(letters)
        return
    for letter in letters:
        typer.echo(f"{letter.message_id}  {letter.queue_name}  {letter.dead_lettered_at.isoformat()}")
        typer.echo(f"  {letter.reason}: {letter.description}\n  {short(letter.body)}")


@app.command()
def redrive(queue: Queue, ids: Ids = None, everything: Everything = False, as_json: Json = False) -> None:
    """Send dead letters again. A dead submission becomes a job with the id it asked for."""
    _require_choice(ids, everything)
    sent: list[str] = []
    missing: list[str] = []
    with gateway_or_database() as client:
        client.queues.get(queue)
        more = True
        while more:
            outcome = client.queues.redrive(Redrive(queue=queue, message_ids=ids or None, all=everything))
            sent += outcome.sent
            missing += [*outcome.not_found, *outcome.still_waiting]
            more = outcome.more and bool(outcome.sent)
    if missing:
        names = ", ".join(sorted(missing))
        raise NotFoundError(
            f"{len(sent)} sent; '{queue}' has no dead letter {names}, or it was already sent again",
            remedy=f"run 'geomill queues dead-letters {queue}'",
        )
    if as_json:
        print_json({"queue_name": queue, "sent": sent})
    else:
        typer.echo(f"{len(sent)} dead letters sent again to {queue}")


@app.command()
def discard(
    queue: Queue,
    reason: Annotated[str, typer.Option("--reason", help="Why they are not needed; stored in the audit.")],
    ids: Ids = None,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Delete dead letters that nobody needs."""
    _require_choice(ids, everything)
    discarded: list[str] = []
    with gateway_or_database() as client:
        client.queues.get(queue)
        more = True
        while more:
            selection = Discard(queue=queue, message_ids=ids or None, all=everything, reason=reason)
            outcome = client.queues.discard(selection)
            discarded += outcome.discarded
            more = outcome.more and bool(outcome.discarded)
    if as_json:
        print_json({"queue_name": queue, "discarded": discarded})
    else:
        typer.echo(f"{len(discarded)} dead letters of {queue} deleted")


def _require_choice(ids: list[str] | None, everything: bool) -> None:
    if bool(ids) is everything:
        raise InputError("exactly one of --id and --all is required", remedy="name messages with --id, or give --all")
