"""Rows as one JSON parameter, for `json_to_recordset`: a batch of any size is one value to send.

Measured against arrays per column, it costs the server a little more per row and the client far less per statement.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, cast


def recordset(rows: Iterable[Any]) -> str:
    """Return dataclass instances as a JSON array of objects. Times are ISO texts, `None` becomes NULL."""
    records = [{name: getattr(row, name) for name in _names(row.__class__)} for row in rows]
    return json.dumps(records, ensure_ascii=False, allow_nan=False, default=_text) if records else "[]"


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast("type[Any]", kind)))


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} does not go into a recordset")
