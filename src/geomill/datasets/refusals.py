"""Errors of work on data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.sdk import HandlerError


class DataRefused(HandlerError):  # noqa: N818  the name says what happened
    """An input that cannot be processed. `remedies` are the options that solve the problem, each with a value that
    fits, a list of possible values, or None."""

    def __init__(self, message: str, code: str, remedies: Mapping[str, Any]) -> None:
        super().__init__(message, retryable=False, code=code)
        self.remedies = dict(remedies)


def refused(code: str, message: str, **remedies: Any) -> DataRefused:
    """Return the error for an invalid input. It is not retried, because the next attempt would fail too."""
    return DataRefused(message, code, remedies)
