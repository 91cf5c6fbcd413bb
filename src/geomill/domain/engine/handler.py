"""The facts about a handler that the checks of a workflow need, without its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.engine.workflow import DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class HandlerInfo:
    name: str
    queue: str = LIGHT_QUEUE
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    params: type[BaseModel] | None = None
    output: type[BaseModel] | None = None
    description: str = ""


Handlers = Mapping[str, HandlerInfo]
