"""`geomill workflows`: list and show workflows, and check workflow files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table
from geomill.domain.engine.graph import targets
from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.stage_job import workflow_id as compiled_id
from geomill.domain.engine.workflow import ConditionalNode, FanOutNode, InputDefinition, Node, TaskNode, Workflow
from geomill.errors import NotFoundError, Problem, WorkflowError
from geomill.workflows.loader import load_file
from geomill.workflows.mermaid import to_mermaid
from geomill.workflows.registry import WorkflowRegistry, workflow_files
from geomill.workflows.schema import json_schema

app = typer.Typer(no_args_is_help=True, help="List, show and check workflows.")


INVALID = 2
"""The exit code if a file has problems. It is that of every invalid input."""


@app.command("list")
def list_workflows(as_json: Json = False) -> None:
    """List the workflows that can be run."""
    workflows = _workflow_registry().all()
    if as_json:
        _print_json([_summary(workflow) for workflow in workflows])
        return
    rows = [(w.workflow_id, str(w.version), _shortened(list(w.inputs)), w.name) for w in workflows]
    print_table(("workflow", "version", "inputs", "name"), rows, empty="There are no workflows.")


@app.command()
def show(
    workflow_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a workflow, or the type of a stage job.")],
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    as_json: Json = False,
) -> None:
    """Show a workflow's inputs, its nodes and the order of the nodes."""
    workflow_registry = _workflow_registry()
    workflow = _find(workflow_registry, workflow_id)
    if mermaid:
        typer.echo(to_mermaid(workflow), nl=False)
    elif as_json:
        _print_json(workflow.body())
    else:
        _print_workflow(workflow)
        if (compiled := compiled_id(workflow.workflow_id)) in workflow_registry:
            typer.echo(f"\nThere is also a stage job with this name: run 'geomill workflows show {compiled}'.")


@app.command()
def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Workflow files, or folders of them.")],
    as_json: Json = False,
) -> None:
    """Check workflow files and print all their problems."""
    handlers, queues = _handlers_and_queues()
    results = [(path, _problems(path, handlers, queues)) for path in _files(paths)]
    if as_json:
        _print_json([_result(path, problems) for path, problems in results])
    else:
        for path, problems in results:
            for line in problems or (f"{path}: ok",):
                typer.echo(str(line))
    if any(problems for _, problems in results):
        raise typer.Exit(INVALID)


WorkflowId = Annotated[str, typer.Argument(metavar="ID", help="Id of the workflow.")]


@app.command()
def source(workflow_id: WorkflowId) -> None:
    """Print the file of a workflow as the gateway has it."""
    with gateway_or_database() as client:
        typer.echo(client.workflows.source(workflow_id), nl=False)


@app.command()
def versions(workflow_id: WorkflowId, as_json: Json = False) -> None:
    """List the definitions of a workflow that jobs have had."""
    with gateway_or_database() as client:
        listed = client.workflows.versions(workflow_id, limit=1000).versions
    if as_json:
        print_json(listed)
        return
    rows = [
        (entry.definition_hash, entry.version, entry.first_used_at, entry.recent_jobs, "yes" if entry.current else "")
        for entry in listed
    ]
    print_table(("hash", "version", "first used", "recent jobs", "current"), rows, empty="No job has used it yet.")


@app.command()
def diff(
    workflow_id: WorkflowId,
    from_hash: Annotated[str, typer.Argument(metavar="FROM", help="Hash of the earlier definition.")],
    to_hash: Annotated[
        str | None, typer.Argument(metavar="TO", help="Hash of the later one. Default: the current one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how two definitions of a workflow differ."""
    with gateway_or_database() as client:
        difference = client.workflows.difference(workflow_id, from_hash, to_hash)
    if as_json:
        print_json(difference)
        return
    for title in ("added", "removed", "changed", "other"):
        if names := getattr(difference, title):
            typer.echo(f"{title}: {', '.join(names)}")
    typer.echo(difference.diff or "", nl=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of workflow files, for editors."""
    _print_json(json_schema())


def _find(workflow_registry: WorkflowRegistry, name: str) -> Workflow:
    """Find a workflow by its id, or the workflow that a stage job of that type compiles to."""
    compiled = compiled_id(name)
    if name not in workflow_registry and compiled in workflow_registry:
        return workflow_registry.get(compiled)
    return workflow_registry.get(name)


def _handlers_and_queues() -> tuple[Handlers, tuple[str, ...]]:
    from geomill.cli import context

    return context.handlers().info, context.settings().queue.task_queues


def _workflow_registry() -> WorkflowRegistry:
    from geomill.cli import context

    return context.workflow_registry(context.handlers())


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"there is no file or folder {path}", remedy="check the path")
        files = workflow_files(path) if path.is_dir() else [path]
        if not files:
            raise NotFoundError(
                f"the folder {path} has no workflow files", remedy="name workflow files *.yaml or *.yml"
            )
        yield from files


def _problems(path: Path, handlers: Handlers, queues: Iterable[str]) -> tuple[Problem, ...]:
    try:
        load_file(path, handlers=handlers, queues=tuple(queues))
    except WorkflowError as error:
        return error.problems
    return ()


def _result(path: Path, problems: Iterable[Problem]) -> dict[str, Any]:
    listed = [asdict(problem) for problem in problems]
    return {"file": str(path), "valid": not listed, "problems": listed}


def _summary(workflow: Workflow) -> dict[str, Any]:
    return {
        "workflow_id": workflow.workflow_id,
        "name": workflow.name,
        "version": workflow.version,
        "description": workflow.description,
        "inputs": {name: d.model_dump(mode="json", exclude_none=True) for name, d in workflow.inputs.items()},
    }


def _print_workflow(workflow: Workflow) -> None:
    typer.echo(f"{workflow.workflow_id} (version {workflow.version}): {workflow.name}")
    if workflow.description:
        typer.echo(workflow.description.strip())
    typer.echo("")
    if workflow.inputs:
        rows = [(name, d.type, _default_text(d), d.description or "") for name, d in workflow.inputs.items()]
        print_table(("input", "type", "value", "description"), rows, empty="")
        typer.echo("")
    nodes = [(name, node.type, _work(node), _next(node)) for name, node in workflow.nodes.items()]
    print_table(("node", "type", "handler", "next"), nodes, empty="")


def _shortened(names: list[str]) -> str:
    """Shorten a long list of names, so that the table fits on a screen."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _default_text(definition: InputDefinition) -> str:
    if definition.is_required:
        return "required"
    return f"default {json.dumps(definition.default, ensure_ascii=False)}"


def _work(node: Node) -> str:
    match node:
        case TaskNode():
            return f"{node.handler} on {node.queue}"
        case FanOutNode():
            return f"{node.task.handler} on {node.task.queue}, for each item"
        case _:
            return ""


def _next(node: Node) -> str:
    if not isinstance(node, ConditionalNode):
        return ", ".join(targets(node))
    return "; ".join(f"{branch.condition or 'otherwise'} → {', '.join(branch.next)}" for branch in node.branches)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
