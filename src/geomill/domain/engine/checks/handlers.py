"""Checks tasks against their handlers: names, queues and params."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from geomill.domain.engine.checks.templates import has_template
from geomill.domain.engine.expressions import is_one_expression
from geomill.domain.engine.finding import Finding, Path, shown
from geomill.domain.engine.handler import HandlerInfo, Handlers
from geomill.domain.engine.workflow import FanOutNode, TaskNode, TaskTemplate, Workflow
from geomill.errors import nearest


def check_handlers(workflow: Workflow, handlers: Handlers, queues: Collection[str]) -> Iterator[Finding]:
    for path, task in tasks(workflow):
        handler = handlers.get(task.handler)
        if handler is None:
            hint = nearest(task.handler, handlers)
            yield Finding((*path, "handler"), f"there is no handler '{task.handler}'", hint)
        yield from _queue(path, task, handler, queues)
        if isinstance(task.params, str):
            yield from _whole((*path, "params"), task.params)
        elif handler and handler.params:
            yield from _params((*path, "params"), task.params, handler.name, handler.params)


def tasks(workflow: Workflow) -> Iterator[tuple[Path, TaskTemplate]]:
    """Yield the task nodes and the tasks of the fan-outs."""
    for node_id, node in workflow.nodes.items():
        if isinstance(node, TaskNode):
            yield ("nodes", node_id), node
        elif isinstance(node, FanOutNode):
            yield ("nodes", node_id, "task"), node.task


def _queue(path: Path, task: TaskTemplate, handler: HandlerInfo | None, queues: Collection[str]) -> Iterator[Finding]:
    if task.queue is not None:
        if task.queue not in queues:
            yield Finding((*path, "queue"), f"there is no queue '{task.queue}'", nearest(task.queue, queues))
    elif handler and handler.queue not in queues:
        message = f"the queue '{handler.queue}' of the handler '{handler.name}' is unknown"
        yield Finding((*path, "handler"), message, "add it to the settings, or name another queue")


def _whole(path: Path, template: str) -> Iterator[Finding]:
    """Check one template for all params. The handler checks the fields of its result when it is rendered."""
    if not is_one_expression(template):
        hint = "write a mapping, or a single expression such as '{{ item }}'"
        yield Finding(path, f"{shown(template)} is text, not params", hint)


def _params(path: Path, params: Mapping[str, Any], handler: str, model: type[BaseModel]) -> Iterator[Finding]:
    accepted = {name: _accepted(name, field, model) for name, field in model.model_fields.items()}
    allowed = {spelling for spellings in accepted.values() for spelling in spellings}
    if model.model_config.get("extra") == "forbid":
        for name in (name for name in params if name not in allowed):
            yield Finding((*path, name), f"the handler '{handler}' has no param '{name}'", nearest(name, allowed))
    for name, field in model.model_fields.items():
        if field.is_required() and not any(spelling in params for spelling in accepted[name]):
            spelling = accepted[name][0]
            yield Finding(path, f"the param '{spelling}' of the handler '{handler}' is missing")
    yield from _constants(path, params, model)


def _accepted(name: str, field: FieldInfo, model: type[BaseModel]) -> list[str]:
    """Return the keys under which a field may be given, the usual one first."""
    choices = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else ()
    aliases = [field.validation_alias, *choices]
    spelled = [str(a.path[0]) if isinstance(a, AliasPath) else a for a in aliases if isinstance(a, str | AliasPath)]
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    return [*spelled, name] if by_name or not spelled else spelled


def _constants(path: Path, params: Mapping[str, Any], model: type[BaseModel]) -> Iterator[Finding]:
    """Yield what the model refuses among the constant values. The results of templates are not known yet."""
    constants = {name: value for name, value in params.items() if not has_template(value)}
    for error in _refused(model, constants):
        place = error["loc"]
        if error["type"] in ("missing", "extra_forbidden") and len(place) == 1:
            continue
        if place and place[0] in constants:
            message = error["msg"].removeprefix("Value error, ")
            yield Finding((*path, *place), message[:1].lower() + message[1:], f"it is {shown(error['input'])}")
        elif not place and len(constants) == len(params):
            yield Finding(path, error["msg"].removeprefix("Value error, "))


def _refused(model: type[BaseModel], constants: Mapping[str, Any]) -> list[ErrorDetails]:
    try:
        model.model_validate(constants)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)
    except Exception:  # noqa: BLE001  a handler's own validator may expect params that are not known yet
        return []
    return []
