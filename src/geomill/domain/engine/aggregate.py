"""The aggregate that a fan-in makes of the outputs that lead to it. Failed and skipped ones are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

Aggregation = Literal["collect", "outcomes", "concat", "sum", "first", "last", "count"]

LOOKS_INSIDE = frozenset({"concat", "sum"})
"""The aggregations that read the values in outputs. The others pass outputs on unchanged."""


def aggregate(kind: Aggregation, outputs: Iterable[Any]) -> dict[str, Any]:
    """Return the output of a fan-in.

    collect  {"results": [output, …], "count"}        in the order of the items
    outcomes {"results": [outcome, …], "count", "failed"}   index, status, output and error of every item, including
             the failed ones
    concat   {"results": [element, …], "count"}       the lists inside the outputs, joined
    sum      {"total": number, "count"}               the sum of all numbers in the outputs
    first    {"result": output or null, "count"}
    last     {"result": output or null, "count"}
    count    {"count"}
    """
    values = list(outputs)
    match kind:
        case "collect":
            return {"results": values, "count": len(values)}
        case "outcomes":
            failed = sum(value["status"] == "failed" for value in values)
            return {"results": values, "count": len(values), "failed": failed}
        case "concat":
            elements = [element for value in values for part in _parts(value) for element in _elements(part)]
            return {"results": elements, "count": len(elements)}
        case "sum":
            total = sum(part for value in values for part in _parts(value) if _is_number(part))
            return {"total": total, "count": len(values)}
        case "first":
            return {"result": values[0] if values else None, "count": len(values)}
        case "last":
            return {"result": values[-1] if values else None, "count": len(values)}
        case "count":
            return {"count": len(values)}


def inside(kind: Aggregation, output: Any) -> Any:
    """Return the part of an output that the aggregate needs."""
    return {"total": aggregate("sum", [output])["total"]} if kind == "sum" else output


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else (value,)


def _elements(part: Any) -> Iterable[Any]:
    return part if isinstance(part, list) else (part,)


def _is_number(part: Any) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool)
