"""What a partner reads holds nothing of the house: a reference stands for it, under which the log has the rest."""

from __future__ import annotations

import re
import secrets

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.:/<-])(?:/[^\s/'\"`,;:()\[\]<>]+){2,}/?")
_HIDDEN = "…"


def new_reference() -> str:
    return secrets.token_hex(4)


def without_places(text: str) -> str:
    """A library's message without folders and addresses of this machine."""
    return _PATH.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, text))
