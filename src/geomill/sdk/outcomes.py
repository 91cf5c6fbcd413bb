"""How the tasks of a fan-out ended, for a later step of the same job: read a page at a time, however many they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from geomill.sdk.result import HandlerError


@dataclass(slots=True)
class ItemOutcome:
    """`error` is None if it succeeded. For an output of more than a megabyte see
    `ctx.read_output`."""

    index: int
    output: Any = None
    error: str | None = None


class OutcomePages(Protocol):
    """The worker's side: a page as JSON, `[[index, output, error], …]`, of what comes behind an index."""

    def __call__(self, node_id: str, after: int, having: str) -> str: ...


def no_pages(node_id: str, after: int, having: str) -> str:  # noqa: ARG001  as above
    raise HandlerError(f"how the tasks of '{node_id}' ended cannot be read here", retryable=False)


def outcomes_in(page: str) -> list[ItemOutcome]:
    return [ItemOutcome(*row) for row in json.loads(page)]
