"""Cursors: the end of a page as opaque text that a client passes back."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from geomill.errors import InputError, Problem


def encode(created_at: datetime, identity: str) -> str:
    return pack(created_at.isoformat(), identity)


def decode_number(cursor: str) -> int:
    """Return the number by which a page goes on, such as that of a dead letter."""
    _, identity = decode(cursor)
    if not identity.isascii() or not identity.isdecimal() or len(identity) > 18:
        raise unreadable()
    return int(identity)


def decode(cursor: str) -> tuple[datetime, str]:
    text, identity = unpack(cursor, str, str)
    return moment(text), identity


def moment(text: str) -> datetime:
    """Return a time from a cursor."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise unreadable() from None


def pack(*values: str | int | float) -> str:
    """Return plain values as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode().rstrip("=")


def unpack(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """Return the values of a cursor that `pack` made. Raises `InputError` unless they have these types."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        cleaned = tuple(value.replace("\x00", "") if isinstance(value, str) else value for value in values)
        for value in cleaned:
            str(value).encode()
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        raise unreadable() from None
    if not isinstance(values, list) or [type(value) for value in cleaned] != list(kinds) or not _bounded(cleaned):
        raise unreadable()
    return cleaned


def _bounded(values: tuple[Any, ...]) -> bool:
    """Return whether the database can store the numbers."""
    return all(isinstance(value, str) or (isfinite(value) and abs(value) < 2**63) for value in values)


def unreadable() -> InputError:
    problem = Problem("cursor", "it is not a cursor of this list", "use next_cursor of the previous page")
    return InputError("the cursor cannot be read", problems=[problem])
