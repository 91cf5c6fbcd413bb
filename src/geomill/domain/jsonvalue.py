"""JSON that PostgreSQL's jsonb accepts: no NaN or infinity, no NUL character, no lone surrogate."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 200
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""One encoder for all calls. `json.dumps` with options makes a new one each time, which takes longer than encoding a
small value."""


class NotJson(ValueError):  # noqa: N818
    """The value cannot be stored. The message names the place in it."""


def to_json(value: Any) -> str:
    """Return the value as JSON text. Raises `NotJson`, with place and reason, if it cannot be stored."""
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJson(_locate(value) or f"not a JSON value: {error}") from error
    if "\\u0000" in text and (place := _locate(value)):
        raise NotJson(place)
    return text


def _locate(value: Any) -> str:
    """Return the first offending place as 'path: reason', or an empty string. Not recursive, because the value may
    contain itself."""
    waiting = [("", value, 0)]
    while waiting:
        path, item, depth = waiting.pop()
        if depth > DEEPEST:
            return f"{path[:80]}…: nested too deeply"
        if isinstance(item, dict):
            if reason := _bad_key(item, path):
                return reason
            entries = [(f"{path}.{key}" if path else key, inner, depth + 1) for key, inner in item.items()]
            waiting += reversed(entries)
        elif isinstance(item, list | tuple):
            waiting += reversed([(f"{path}[{index}]", inner, depth + 1) for index, inner in enumerate(item)])
        elif reason := _reason(item):
            return f"{path or 'value'}: {reason}"
    return ""


def _bad_key(item: dict[Any, Any], path: str) -> str:
    for key in item:
        if not isinstance(key, str):
            return f"{path}: the key {key!r} is not a string"
        if reason := _reason(key):
            return f"{(f'{path}.{key}' if path else key)!r}: {reason}"
    return ""


def _reason(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a JSON number; use null"
    if isinstance(value, str):
        if "\x00" in value:
            return "the text has a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "the text has half of a surrogate pair"
        return ""
    if value is None or isinstance(value, bool | int | float):
        return ""
    return f"a {type(value).__name__} is not a JSON value"
