"""How fast templates render, beside plain Jinja2 in the same run."""

from __future__ import annotations

import timeit
from functools import partial

from jinja2.sandbox import ImmutableSandboxedEnvironment

from benchmarks.figures import Figure
from geomill.domain.engine.expressions import compile_value

SCOPE = {"inputs": {"n": 5}, "nodes": {"validate": {"output": {"size_mb": 12.5, "bands": [1, 2, 3]}}}, "index": 7}
CASES = {
    "a path": "{{ nodes.validate.output.size_mb }}",
    "an expression": "{{ nodes.validate.output.bands | length + 1 }}",
    "text around a value": "tiles/{{ index }}.tif",
}


def run() -> list[Figure]:
    plain = ImmutableSandboxedEnvironment()
    figures = []
    for name, text in CASES.items():
        rate = _rate(partial(compile_value(text).render, SCOPE))
        peer = _rate(partial(plain.from_string(text).render, SCOPE))
        note = f"{rate / peer:.1f} times plain Jinja2, which gives a string"
        figures.append(Figure(f"template, {name}", rate, "renders/s", note))
    return figures


def _rate(call: object) -> float:
    timer = timeit.Timer(call)  # type: ignore[arg-type]
    number, _ = timer.autorange()
    return number / min(timer.repeat(3, number))
