"""A finding: one error in a workflow, with its path in the document. The loader adds file and line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]

SHOWN = 80
"""The maximum number of characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class Finding:
    path: Path
    message: str
    hint: str = ""

    @property
    def where(self) -> str:
        return dotted(self.path)


def dotted(path: Path) -> str:
    """Return a path as people write it: nodes.route.branches[0].next."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def shown(value: Any) -> str:
    """Return a value for a message: as JSON, cut to `SHOWN` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
