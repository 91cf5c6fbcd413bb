"""Dependencies that only put values together, on the event loop: FastAPI sends plain functions through threads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from geomill.errors import InputError


def on_the_loop(make: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """With the same parameters."""

    async def made(**values: Any) -> Any:
        try:
            return make(**values)
        except (TypeError, ValueError, KeyError, OverflowError) as error:  # of what was JSON, and of another shape
            raise InputError(f"a parameter does not have the shape that it needs: {str(error)[:200]}") from None

    made.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]  # it is what FastAPI looks at
    return made
