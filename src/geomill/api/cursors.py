"""Cursors: the end of a page as opaque text that a client passes back."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime

from geomill.errors import InputError, Problem


def encode(created_at: datetime, identity: str) -> str:
    text = json.dumps([created_at.isoformat(), identity], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_number(cursor: str) -> int:
    """Return the number by which a page goes on, such as that of a dead letter."""
    _, identity = decode(cursor)
    if not identity.isascii() or not identity.isdecimal() or len(identity) > 18:
        raise _unreadable()
    return int(identity)


def decode(cursor: str) -> tuple[datetime, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        moment, identity = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        created_at = datetime.fromisoformat(moment).astimezone(UTC)
        identity.replace("\x00", "").encode()
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error):
        raise _unreadable() from None
    return created_at, identity.replace("\x00", "")


def _unreadable() -> InputError:
    problem = Problem("cursor", "it is not a cursor of this API", "use next_cursor of the previous page")
    return InputError("the cursor cannot be read", problems=[problem])
