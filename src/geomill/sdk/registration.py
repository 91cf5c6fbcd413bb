"""The decorator that makes a function a handler. It only marks the function and changes no global state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from geomill.domain.engine.handler import HandlerInfo
from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.workflow import DEFAULT_TIMEOUT_SECONDS

MARK = "__geomill_handler__"
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """A handler. If `isolated`, it runs in a child process, so a crash ends only one attempt."""

    info: HandlerInfo
    function: Callable[..., Any]
    isolated: bool = False
    former_names: tuple[str, ...] = ()
    """Deprecated names by which workflow files and pinned definitions may still call the handler."""
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))


def register_handler(
    name: str,
    *,
    queue: str = LIGHT_QUEUE,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    params: type[BaseModel] | None = None,
    output: type[BaseModel] | None = None,
    description: str = "",
    isolated: bool | None = None,
    former_names: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Declare a handler: its name in workflows, its default queue, its parameters and its output.

    The models `params` and `output` let the loader check workflows that use the handler. `isolated` handlers run in a
    child process, which may crash or be killed. By default these are all handlers that are not `async`. `former_names`
    keep working in workflow files and pinned definitions after a handler was renamed.
    """
    if not name or len(name) > 64:
        raise ValueError(f"a handler's name must have 1 to 64 characters, not be {name!r}")
    if timeout_seconds <= 0:
        raise ValueError(f"timeout_seconds of the handler {name!r} must be more than 0, not {timeout_seconds}")

    def mark(function: Function) -> Function:
        about = description or inspect.getdoc(function) or ""
        info = HandlerInfo(name, queue, timeout_seconds, params, output, about.partition("\n")[0])
        apart = not inspect.iscoroutinefunction(function) if isolated is None else isolated
        setattr(function, MARK, RegisteredHandler(info, function, apart, former_names))
        return function

    return mark
