"""`python -m benchmarks [--json FILE] [NAME …]`"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.figures import Figure, as_json
from benchmarks.server import server

ALL = (
    "evaluator", "templates", "schema", "engine", "scaling", "broker", "horizon", "fairness", "stages", "platform",
    "lists", "raster", "vector", "catalogue", "verdicts", "serving",
)  # fmt: skip
LONG = ("growth",)
"""Those that run only when they are named."""


def main(arguments: list[str]) -> None:
    file = Path(arguments.pop(arguments.index("--json") + 1)) if "--json" in arguments else None
    names = [argument for argument in arguments if not argument.startswith("--")] or list(ALL)
    unknown = set(names) - {*ALL, *LONG}
    if unknown:
        sys.exit(f"there is no benchmark {', '.join(sorted(unknown))}; known: {', '.join((*ALL, *LONG))}")
    figures: list[Figure] = []
    with server():
        for name in names:
            print(f"── {name}", flush=True)
            for figure in importlib.import_module(f"benchmarks.{name}").run():
                figures.append(figure)
                print(figure, flush=True)
    if file:
        file.write_text(as_json(figures))


main(sys.argv[1:])
