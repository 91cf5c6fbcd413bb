"""Errors of work on data."""

from __future__ import annotations

from geomill.sdk import HandlerError


def refused(code: str, message: str) -> HandlerError:
    """Return the error for an invalid input. It is not retried, because the next attempt would fail too."""
    return HandlerError(message, retryable=False, code=code)
