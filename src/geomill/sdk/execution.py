"""Runs a handler once and returns a plain result, whatever the handler does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.large import LARGEST
from geomill.domain.engine.retry import DATABASE_AWAY, NO_SPACE
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.errors import GeomillError, UnavailableError
from geomill.sdk.causes import passing_code
from geomill.sdk.context import HandlerContext
from geomill.sdk.printing import all_printed_to, printed_to
from geomill.sdk.registration import RegisteredHandler
from geomill.sdk.result import HandlerError, HandlerResult

log = logging.getLogger(__name__)

LONGEST_ERROR = 2_000
LONGEST_CODE = 64
LARGEST_METRICS = 100_000
_REASONS = {NO_SPACE: "a disk was full or could not be written", DATABASE_AWAY: "the database was unreachable"}


@dataclass(slots=True)
class Ended:
    """How an attempt ended, as JSON-ready values."""

    success: bool
    output: Any = None
    error_message: str = ""
    error_code: str = ""
    retryable: bool = True
    metrics: dict[str, Any] = field(default_factory=dict)
    text: str = "{}"
    """The output as JSON, for the report."""


async def execute(
    handler: RegisteredHandler,
    params: Mapping[str, Any],
    make_context: Callable[[Any], HandlerContext[Any]],
) -> Ended:
    """Run a handler. Errors of the handler become a result; only a cancellation is raised."""
    context: HandlerContext[Any] | None = None
    try:
        context = make_context(_typed_params(handler, params))
        with printed_to(context.logger):
            if handler.is_async:
                returned = await handler.function(context)
            else:
                returned = await asyncio.to_thread(handler.function, context)
        return _succeeded(handler, returned)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the boundary to foreign code: every error becomes a result
        return _failed_by(error, context)


def execute_here(
    handler: RegisteredHandler,
    params: Mapping[str, Any],
    make_context: Callable[[Any], HandlerContext[Any]],
) -> Ended:
    """Does what `execute` does in this thread. No event loop runs in it, so the handler may start its own."""
    context: HandlerContext[Any] | None = None
    try:
        context = make_context(_typed_params(handler, params))
        with all_printed_to(context.logger):
            returned = handler.function(context)
            returned = asyncio.run(returned) if handler.is_async else returned
        return _succeeded(handler, returned)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the same boundary
        return _failed_by(error, context)


def _failed_by(error: BaseException, context: HandlerContext[Any] | None) -> Ended:
    """Return the result for an error. Our own errors are shown with their message, others only with their type and a
    reference, because partners read this and the text may contain SQL, paths or host names."""
    logger = context.logger if context else log
    if isinstance(error, GeomillError):
        if error.__cause__:
            logger.warning("%s, because of %s: %s", error, type(error.__cause__).__name__, error.__cause__)
        if isinstance(error, HandlerError):
            return failed(str(error), error.error_code, retryable=error.retryable)
        return failed(str(error), error.code, retryable=isinstance(error, UnavailableError))
    reference, kind = new_reference(), type(error).__name__
    logger.error("the handler raised %s, reference %s", kind, reference, exc_info=error)
    code = "memory" if isinstance(error, MemoryError) else passing_code(error) or "handler_error"
    what = _REASONS.get(code, f"the handler raised {kind}")
    return failed(f"{what}: see the log for the reference {reference}", code, retryable=True)


def _typed_params(handler: RegisteredHandler, params: Mapping[str, Any]) -> Any:
    if handler.info.params is None:
        return dict(params)
    try:
        return handler.info.params.model_validate(dict(params))
    except ValidationError as error:
        raise HandlerError(
            f"invalid parameters for {handler.info.name}: {_first(error)}", retryable=False, code="invalid_params"
        ) from error


def _succeeded(handler: RegisteredHandler, returned: Any) -> Ended:
    metrics: dict[str, Any] = {}
    if returned is None:
        returned = {}
    elif isinstance(returned, HandlerResult):
        if not returned.success:
            reason = returned.error_message or "the handler gave no reason"
            return failed(reason, returned.error_code, returned.retryable)
        metrics = dict(returned.metrics)
        _text("metrics", metrics, LARGEST_METRICS)
        returned = returned.output
    output = _plain(handler, returned)
    return Ended(success=True, output=output, metrics=metrics, text=_text("output", output, LARGEST))


def _plain(handler: RegisteredHandler, output: Any) -> Any:
    model = handler.info.output
    if model is not None and not isinstance(output, model):
        try:
            output = model.model_validate(output)
        except ValidationError as error:
            raise HandlerError(
                f"the output of {handler.info.name} does not match its model: {_first(error)}",
                retryable=False,
                code="invalid_output",
            ) from error
    if isinstance(output, dict):
        return dict(output)
    if isinstance(output, BaseModel):
        return output.model_dump(mode="json")
    if isinstance(output, Mapping):
        return dict(output)
    raise HandlerError(
        f"{handler.info.name} must return a mapping, a model or a HandlerResult, not {type(output).__name__}",
        retryable=False,
        code="invalid_output",
    )


def _text(what: str, value: Mapping[str, Any], largest: int) -> str:
    if not value:
        return "{}"
    try:
        text = to_json(value)
    except NotJson as error:
        raise HandlerError(f"the {what} cannot be stored: {error}", retryable=False, code="invalid_output") from error
    if len(text) > largest:
        reason = f"the {what} has {len(text):,} characters of JSON, more than {largest:,}: store it as a file"
        raise HandlerError(reason, retryable=False, code="invalid_output")
    return text


def failed(message: str, code: str, retryable: bool) -> Ended:
    clean = message.replace("\x00", "").encode(errors="replace").decode()
    message, code = clean[:LONGEST_ERROR], code[:LONGEST_CODE]
    return Ended(success=False, error_message=message, error_code=code, retryable=retryable)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "value"
    return f"{place}: {first['msg']} (got {str(first['input'])[:80]!r})"
