"""One thing that is wrong with a workflow, by its path in the document. The loader adds file and line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]

SHOWN = 80
"""How many characters of a value a message shows."""


@dataclass(frozen=True, slots=True)
class Finding:
    path: Path
    message: str
    hint: str = ""

    @property
    def where(self) -> str:
        return dotted(self.path)


def dotted(path: Path) -> str:
    """A path as people write it: nodes.route.branches[0].next."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def shown(value: Any) -> str:
    """A value for a message, as JSON and not too long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
