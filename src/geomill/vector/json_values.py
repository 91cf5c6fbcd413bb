"""Converts values to documents that PostgreSQL accepts as jsonb.

PostgreSQL refuses zero characters, lone surrogates, numbers that are not finite, very large exponents and deep nesting,
and one refused value would fail the whole load.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from typing import Any

import pyarrow as pa

_LARGEST_EXPONENT = 400


def from_texts(values: pa.Array) -> pa.Array:
    """Convert texts of a JSON column. A text that is not JSON becomes a JSON string."""
    return pa.array([None if text is None else _document(text.decode()) for text in values.to_pylist()], pa.binary())


def from_nested(values: pa.Array, counts: Counter[str]) -> pa.Array:
    """Convert lists, structures and maps. Numbers that are not finite become null and are counted."""
    rows = values.to_pylist(maps_as_pydicts="lossy")
    return pa.array([None if row is None else _encoded(_clean(row, counts)) for row in rows], pa.binary())


def _document(text: str) -> bytes:
    try:
        value = json.loads(text, parse_float=_float, parse_constant=_no_constant)
        return _encoded(_clean(value, Counter()))
    except (ValueError, RecursionError):
        return _encoded(text)


def _float(text: str) -> float:
    exponent = text.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise ValueError(text)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _clean(value: Any, counts: Counter[str]) -> Any:
    match value:
        case str():
            return value.replace("\0", "")
        case float() if not math.isfinite(value):
            counts["number_not_finite"] += 1
            return None
        case dict():
            return {_clean(str(key), counts): _clean(member, counts) for key, member in value.items()}
        case list() | tuple():
            return [_clean(member, counts) for member in value]
        case bytes():
            return base64.b64encode(value).decode()
        case None | bool() | int() | float():
            return value
        case _:
            return str(value)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
