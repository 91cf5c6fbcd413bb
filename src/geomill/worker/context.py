"""Makes the context of a task. It is the same in the worker and in a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from geomill.domain.engine.message import TaskMessage
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.sdk.context import HandlerContext, Reporter, SavedCheckpoint
from geomill.sdk.result import HandlerError
from geomill.worker.tasklog import TaskLogger

LARGEST_CHECKPOINT = 10_000_000
_DEFAULTS = {field.name: field.default for field in fields(HandlerContext) if field.default is not MISSING}


def services(**own: Any) -> dict[str, Any]:
    """Return the fields that all tasks of a process share, for `make_context`."""
    return _DEFAULTS | own


def make_context(
    message: TaskMessage,
    checkpoint: tuple[str, dict[str, Any]] | None,
    params: Any,
    logger: TaskLogger,
    reporter: Reporter,
    is_cancelled: Callable[[], bool],
    services: Mapping[str, Any],
) -> HandlerContext[Any]:
    """Make a context without its initialiser. A frozen class sets its fields one by one, which takes four times as
    long."""
    context: HandlerContext[Any] = HandlerContext.__new__(HandlerContext)
    context.__dict__.update(
        services,
        task_id=message.shown_task_id,
        attempt_id=message.task_id,
        job_id=message.job_id,
        node_id=message.node_id,
        handler=message.handler,
        params=params,
        logger=logger,
        reporter=reporter,
        item_index=message.item_index,
        attempt=message.attempt,
        retry_count=message.retry_count,
        checkpoint=SavedCheckpoint(*checkpoint) if checkpoint else None,
        is_cancelled=is_cancelled,
    )
    return context


def checkpoint_text(phase: str, data: Mapping[str, Any]) -> str:
    """Return a checkpoint as JSON. Raises `HandlerError` if it cannot be stored."""
    try:
        text = to_json(dict(data))
    except NotJson as error:
        raise HandlerError(f"the checkpoint {phase!r} cannot be stored: {error}", retryable=False) from error
    if len(text) > LARGEST_CHECKPOINT:
        raise HandlerError(
            f"the checkpoint {phase!r} has {len(text):,} characters of JSON, more than {LARGEST_CHECKPOINT:,}",
            retryable=False,
        )
    return text
