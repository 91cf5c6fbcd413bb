"""Dependencies that only put values together, on the event loop: FastAPI sends plain functions through threads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any


def on_the_loop(make: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """With the same parameters."""

    async def made(**values: Any) -> Any:
        return make(**values)

    made.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]  # it is what FastAPI looks at
    return made
