"""The ends of a handler: a result, or an error that says whether a retry may help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from geomill.errors import GeomillError

Output = Mapping[str, Any] | BaseModel


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of a handler. A handler may also return just its output, or raise `HandlerError`."""

    success: bool = True
    output: Output = field(default_factory=dict)
    error_message: str | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    retryable: bool = True
    error_code: str = "handler_error"


class HandlerError(GeomillError):
    """A failure that the handler reports. Workflows use its `code` in `retry_on`."""

    code = "handler_error"

    def __init__(self, message: str, *, retryable: bool = True, code: str = "handler_error") -> None:
        super().__init__(message)
        self.retryable = retryable
        self.error_code = code
