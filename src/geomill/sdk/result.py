"""How a handler ends: with a result, or with an error that says whether trying again can help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from geomill.errors import GeomillError

Output = Mapping[str, Any] | BaseModel


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """A handler may also simply return its output, or raise `HandlerError`."""

    success: bool = True
    output: Output = field(default_factory=dict)
    error_message: str | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    retryable: bool = True
    error_code: str = "handler_error"


class HandlerError(GeomillError):
    """The handler's own failure. `code` is what a workflow's `retry_on` names."""

    code = "handler_error"

    def __init__(self, message: str, *, retryable: bool = True, code: str = "handler_error") -> None:
        super().__init__(message)
        self.retryable = retryable
        self.error_code = code
