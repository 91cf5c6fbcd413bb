"""Runs cheap FastAPI dependencies on the event loop. FastAPI runs plain functions in threads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from geomill.errors import InputError


def on_the_loop(make: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function with the same parameters."""

    async def dependency(**values: Any) -> Any:
        try:
            return make(**values)
        except (TypeError, ValueError, KeyError, OverflowError) as error:  # valid JSON of another shape
            raise InputError(f"a parameter has the wrong structure: {str(error)[:200]}") from None

    dependency.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]  # FastAPI reads it
    return dependency
