"""`geomill instances | handlers | circuits`: the processes, the handlers they have, and those that are held back."""

from __future__ import annotations

from typing import Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, age, print_json, print_table

handlers = typer.Typer(no_args_is_help=True, help="List and show handlers.")
circuits = typer.Typer(no_args_is_help=True, help="Handlers whose tasks are held back after failures.")

HandlerName = Annotated[str, typer.Argument(metavar="HANDLER", help="Name of the handler.")]


def instances(as_json: Json = False) -> None:
    """List orchestrators and workers with what each has done since its start."""
    with gateway_or_database() as client:
        processes = client.operations.instances()
    if as_json:
        print_json(processes)
        return
    rows = []
    for process in processes:
        done = [f"{count} {name}" for name, count in process.counts.model_dump().items() if count]
        state = age(process.heartbeat_seconds) if process.alive else "gone"
        work = process.owned_jobs if process.role == "orchestrator" else process.leased_tasks
        rows.append((process.instance_id, process.hostname, process.version, state, work, done))
    empty = "No orchestrator and no worker is running. Start them with 'geomill up'."
    print_table(("process", "host", "version", "heartbeat", "has now", "has done"), rows, empty=empty)


@handlers.command("list")
def list_handlers(as_json: Json = False) -> None:
    """List the handlers with their queues and the workers that have them."""
    with gateway_or_database() as client:
        listed = client.operations.handlers()
    if as_json:
        print_json(listed)
        return
    rows = [(handler.name, handler.queue, handler.workers, handler.description) for handler in listed]
    print_table(("handler", "queue", "workers", "does"), rows, empty="There are no handlers.")


@handlers.command("show")
def show_handler(name: HandlerName, as_json: Json = False) -> None:
    """Show a handler with the schemas of its parameters and output."""
    with gateway_or_database() as client:
        handler = client.operations.handler(name)
    if as_json:
        print_json(handler)
        return
    typer.echo(f"{handler.name}  on {handler.queue}: {handler.description or 'only workers know it'}")
    for title, schema in (("parameter", handler.params_schema), ("output", handler.output_schema)):
        for field, about in (schema or {}).get("properties", {}).items():
            kind = about.get("type") or about.get("$ref", "").rpartition("/")[2] or "any"
            typer.echo(f"  {title} {field}: {kind}" + (f", {about['description']}" if "description" in about else ""))
    for instance in handler.instances:
        typer.echo(f"  on {instance.instance_id}, version {instance.version}")


@circuits.command("list")
def list_circuits(as_json: Json = False) -> None:
    """List the handlers that have failed in a row."""
    with gateway_or_database() as client:
        listed = client.operations.circuits()
    if as_json:
        print_json(listed)
        return
    rows = [(c.handler, c.state.value, c.failures, c.probe_at, f"{c.error_code}: {c.error_message}") for c in listed]
    print_table(("handler", "circuit", "failures", "next probe", "error"), rows, empty="No handler is held back.")


@circuits.command("close")
def close_circuit(name: HandlerName, as_json: Json = False) -> None:
    """Let the tasks of a handler begin again. Tasks that were put off begin at the time they were put off to."""
    with gateway_or_database() as client:
        circuit = client.operations.close_circuit(name)
    if as_json:
        print_json(circuit)
    else:
        typer.echo(f"the circuit of {circuit.handler} is {circuit.state.value}")
