"""How work on pixels fails."""

from __future__ import annotations

from geomill.sdk import HandlerError


def refused(code: str, message: str) -> HandlerError:
    """The input is wrong, and will be next time."""
    return HandlerError(message, retryable=False, code=code)
