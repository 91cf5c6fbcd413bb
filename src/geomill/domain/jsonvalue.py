"""JSON that PostgreSQL's jsonb takes: no NaN or infinity, no NUL character, no lone surrogate."""

from __future__ import annotations

import json
import math
from typing import Any


class NotJson(ValueError):  # noqa: N818
    """Names the place of what cannot be stored."""


def to_json(value: Any) -> str:
    """The value as JSON text, or `NotJson` that says where and why it cannot be stored."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJson(_locate(value, "") or f"not a JSON value: {error}") from error
    if "\\u0000" in text and (place := _locate(value, "")):
        raise NotJson(place)
    return text


def _locate(value: Any, path: str, depth: int = 0) -> str:
    """The first offending place as 'path: reason', or an empty string."""
    if depth > 200:
        return f"{path}: nested too deeply"
    if isinstance(value, dict):
        return _first(_locate_entry(key, item, path, depth) for key, item in value.items())
    if isinstance(value, list | tuple):
        return _first(_locate(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value))
    reason = _reason(value)
    return f"{path or 'value'}: {reason}" if reason else ""


def _locate_entry(key: Any, item: Any, path: str, depth: int) -> str:
    if not isinstance(key, str):
        return f"{path}: the key {key!r} is not a string"
    here = f"{path}.{key}" if path else key
    if reason := _reason(key):
        return f"{here!r}: {reason}"
    return _locate(item, here, depth + 1)


def _first(found: Any) -> str:
    return next((place for place in found if place), "")


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
