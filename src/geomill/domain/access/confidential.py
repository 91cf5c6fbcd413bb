"""Removes internal details from messages to partners. A reference in the message leads to the details in the log."""

from __future__ import annotations

import re
import secrets
from urllib.parse import SplitResult, parse_qsl, urlsplit

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.:/<-])(?:/[^\s/'\"`,;:()\[\]<>]+){2,}/?")
_HIDDEN = "…"


def new_reference() -> str:
    return secrets.token_hex(4)


def without_places(text: str) -> str:
    """Return a library's message without the paths and addresses in it."""
    return _PATH.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, text))


_HARMLESS = frozenset(
    {"sslmode", "host", "port", "dbname", "user", "application_name", "connect_timeout", "target_session_attrs"}
)
"""Parameters of a database URL whose values are no secrets."""


def masked_url(url: str) -> str:
    """Return a URL without its password and the values in its query. A URL that is hard to read is masked whole."""
    try:
        parts = urlsplit(url)
        user, separator, host = parts.netloc.rpartition("@")
        query = parse_qsl(parts.query, max_num_fields=100)
    except ValueError:
        return _HIDDEN
    may_be_password = bool(separator) or ":" in host
    if not _is_host(host) or (may_be_password and "@" in parts.path + parts.query + parts.fragment):
        return _HIDDEN  # a password may have a character that should have been escaped
    name, colon, _ = user.partition(":")
    login = f"{name}{colon and ':' + _HIDDEN}{separator}"
    shown = "&".join(f"{key}={value if key in _HARMLESS else _HIDDEN}" for key, value in query)
    return SplitResult(parts.scheme, login + host, parts.path, shown, "").geturl()


def _is_host(text: str) -> bool:
    """Whether the text is a host, or several with commas, each perhaps with a port."""
    return all(re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[^:\[\]/]*)(:[0-9]*)?", host) for host in text.split(","))
