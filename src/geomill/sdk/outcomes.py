"""The outcomes of a fan-out's tasks for a later task of the same job, read one page at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from geomill.sdk.result import HandlerError


@dataclass(slots=True)
class ItemOutcome:
    """The outcome of one item. `error` is None if it succeeded. Read a large output with `ctx.read_output`."""

    index: int
    output: Any = None
    error: str | None = None


class OutcomePages(Protocol):
    """The worker's side. Returns the page after an index as JSON: `[[index, output, error], …]`."""

    def __call__(self, node_id: str, after: int, having: str) -> str: ...


def no_pages(node_id: str, after: int, having: str) -> str:  # noqa: ARG001  as above
    raise HandlerError(f"the outcomes of the tasks of '{node_id}' cannot be read here", retryable=False)


def outcomes_in(page: str) -> list[ItemOutcome]:
    return [ItemOutcome(*row) for row in json.loads(page)]
