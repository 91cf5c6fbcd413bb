"""A figure, and how it is shown."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    note: str = ""

    def __str__(self) -> str:
        digits = 0 if self.value >= 1000 else 1 if self.value >= 10 else 2
        return f"{self.what:<58} {self.value:>12,.{digits}f} {self.unit:<12} {self.note}"


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_child(module: str, function: str, **arguments: Any) -> list[Figure]:
    """Run `module.function(**arguments)` in a process of its own, so that its peak of memory is its own."""
    code = (
        f"import json, importlib; from dataclasses import asdict;"
        f"figures = importlib.import_module({module!r}).{function}(**json.loads({json.dumps(arguments)!r}));"
        f"print(json.dumps([asdict(f) for f in figures]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [Figure(**figure) for figure in json.loads(done.stdout.splitlines()[-1])]


def as_json(figures: list[Figure]) -> str:
    return json.dumps([asdict(figure) for figure in figures], indent=2)
