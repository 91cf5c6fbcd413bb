"""Turns the text of a workflow file into a workflow that can run.

    YAML → shape (Pydantic) → meaning (domain checks) → resolved: queue and timeout of every task written out

A job pins the resolved definition, so later changes of a handler's declarations do not affect it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic import ValidationError

from geomill.domain.engine.checks import Finding, check
from geomill.domain.engine.handler import Handlers
from geomill.domain.engine.workflow import FanOutNode, Node, TaskNode, TaskTemplate, Workflow
from geomill.errors import Problem, WorkflowError
from geomill.workflows.schema_problems import schema_findings
from geomill.workflows.yaml_source import LARGEST_FILE, Document, invalid, read_yaml


def load_file(path: Path, *, handlers: Handlers, queues: Collection[str], file: str | None = None) -> Workflow:
    """Load the workflow in a file. `file` is its name in messages. Raises `WorkflowError` with every problem."""
    name = file or str(path)
    return load_text(read_source(path, name), file=name, handlers=handlers, queues=queues)


def read_source(path: Path, file: str) -> bytes:
    """Read a workflow file, up to one byte more than is allowed. `file` is its name in messages."""
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise invalid(file, [Problem("", f"the file cannot be read: {error.strerror or error}")]) from error


def load_text(text: str | bytes, *, file: str, handlers: Handlers, queues: Collection[str]) -> Workflow:
    document = read_yaml(text, file=file)
    try:
        workflow = Workflow.model_validate(document.value)
    except ValidationError as error:
        raise _refused(file, document, schema_findings(error, document.value)) from error
    if findings := check(workflow, handlers, queues):
        raise _refused(file, document, findings)
    return resolve(workflow, handlers)


def resolve(workflow: Workflow, handlers: Handlers) -> Workflow:
    """Return the workflow with the handlers' queues and timeouts written into its tasks."""
    nodes = {node_id: _resolved(node, handlers) for node_id, node in workflow.nodes.items()}
    return workflow.model_copy(update={"nodes": nodes})


def _resolved(node: Node, handlers: Handlers) -> Node:
    if isinstance(node, TaskNode):
        return node.model_copy(update=_queue_and_timeout(node, handlers))
    if isinstance(node, FanOutNode):
        return node.model_copy(update={"task": node.task.model_copy(update=_queue_and_timeout(node.task, handlers))})
    return node


def _queue_and_timeout(task: TaskTemplate, handlers: Handlers) -> dict[str, str | float]:
    handler = handlers[task.handler]
    return {
        "queue": task.queue or handler.queue,
        "timeout_seconds": task.timeout_seconds or handler.timeout_seconds,
    }


def _refused(file: str, document: Document, findings: Iterable[Finding]) -> WorkflowError:
    problems = [Problem(f.where, f.message, f.hint, line=document.line_of(f.path)) for f in findings]
    return invalid(file, sorted(problems, key=lambda problem: problem.line))
