"""Removes internal details from messages to partners. A reference in the message leads to the details in the log."""

from __future__ import annotations

import re
import secrets

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.:/<-])(?:/[^\s/'\"`,;:()\[\]<>]+){2,}/?")
_HIDDEN = "…"


def new_reference() -> str:
    return secrets.token_hex(4)


def without_places(text: str) -> str:
    """Return a library's message without the paths and addresses in it."""
    return _PATH.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, text))
