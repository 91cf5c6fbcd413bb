"""Runs one handler once: parameters in, a plain result out, whatever the handler does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from geomill.domain.jsonvalue import NotJson, to_json
from geomill.sdk.context import HandlerContext
from geomill.sdk.registration import RegisteredHandler
from geomill.sdk.result import HandlerError, HandlerResult

LONGEST_ERROR = 2_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended, as JSON-ready values."""

    success: bool
    output: Any = None
    error_message: str = ""
    error_code: str = ""
    retryable: bool = True
    metrics: dict[str, Any] = field(default_factory=dict)


async def execute(
    handler: RegisteredHandler,
    params: Mapping[str, Any],
    make_context: Callable[[Any], HandlerContext[Any]],
) -> Ended:
    """Never raises for what the handler does; being cancelled itself is passed on."""
    context: HandlerContext[Any] | None = None
    try:
        context = make_context(_typed_params(handler, params))
        if handler.is_async:
            returned = await handler.function(context)
        else:
            returned = await asyncio.to_thread(handler.function, context)
        return _succeeded(handler, returned)
    except HandlerError as error:
        return _failed(str(error), error.error_code, retryable=error.retryable)
    except Exception as error:  # the border to code that is not ours: every failure becomes a result
        if context:
            context.logger.exception("the handler raised %s", type(error).__name__)
        return _failed(f"{type(error).__name__}: {error}", "handler_error", retryable=True)


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
    result = returned if isinstance(returned, HandlerResult) else HandlerResult(output=returned or {})
    if not result.success:
        return _failed(result.error_message or "the handler gave no reason", result.error_code, result.retryable)
    return Ended(success=True, output=_json(_plain(handler, result.output)), metrics=_json(dict(result.metrics)))


def _plain(handler: RegisteredHandler, output: Any) -> Any:
    model = handler.info.output
    if model is not None and not isinstance(output, model):
        try:
            output = model.model_validate(output)
        except ValidationError as error:
            raise HandlerError(
                f"{handler.info.name} returned what its output model refuses: {_first(error)}",
                retryable=False,
                code="invalid_output",
            ) from error
    if isinstance(output, BaseModel):
        return output.model_dump(mode="json")
    if isinstance(output, Mapping):
        return dict(output)
    raise HandlerError(
        f"{handler.info.name} must return a mapping, a model or a HandlerResult, not {type(output).__name__}",
        retryable=False,
        code="invalid_output",
    )


def _json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        to_json(value)
    except NotJson as error:
        raise HandlerError(f"the output cannot be stored: {error}", retryable=False, code="invalid_output") from error
    return value


def _failed(message: str, code: str, retryable: bool) -> Ended:
    clean = message.replace("\x00", "").encode(errors="replace").decode()
    return Ended(success=False, error_message=clean[:LONGEST_ERROR], error_code=code, retryable=retryable)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "value"
    return f"{place}: {first['msg']} (got {str(first['input'])[:80]!r})"
