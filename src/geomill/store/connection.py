"""Connects to the database with settings that notice a silent network, and with errors that never show a password.

A network that drops packets silently looks like a slow server. So both sides probe a session that
has been quiet for some seconds, and neither waits longer than `tcp_user_timeout` for an acknowledgement. A lost
connection is noticed within `SILENCE_SECONDS`. Sessions on Unix sockets ignore these settings.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from geomill.errors import DatabaseUnreachable, IdentityUnavailable, SettingsError
from geomill.identity.passwords import password_for

_REMEDY = "check that the server runs and that GEOMILL_DATABASE_URL is right, or unset it to use a private cluster"

SILENCE_SECONDS = 10
PROBES = {"idle": 4, "interval": 2, "count": 3}
"""Seconds of quiet before the first probe, seconds between probes, and how many may stay unanswered."""
CONNECT_SECONDS = 5

NETWORK = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": SILENCE_SECONDS * 1000,
    **{f"keepalives_{name}": value for name, value in PROBES.items()},
}
"""Settings of libpq. The URL takes precedence."""
SERVER_NETWORK = {
    "tcp_user_timeout": f"{SILENCE_SECONDS}s",
    **{f"tcp_keepalives_{name}": str(value) for name, value in PROBES.items()},
}
"""Settings of the session, for the server's side: it frees the locks of a client that has vanished."""


def attentive(url: str) -> str:
    """Return the URL with settings that notice a silent network."""
    parts = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in NETWORK.items() if name not in parts})


async def connect(url: str, *, connect_timeout: int = 10) -> psycopg.AsyncConnection[Any]:
    """Open an autocommit connection. Callers begin transactions explicitly."""
    parts = _parse(url)
    parts.setdefault("connect_timeout", connect_timeout)
    parts.setdefault("application_name", "geomill")
    parts = NETWORK | parts
    try:
        if token := await token_password(url):
            parts["password"] = token
        return await psycopg.AsyncConnection.connect(**parts, autocommit=True)
    except psycopg.OperationalError as exc:
        reason = _reason(exc, parts.get("password"))
        raise DatabaseUnreachable(f"no connection to {place(parts)}: {reason}", remedy=_REMEDY) from None


class NoToken(psycopg.OperationalError):
    """There is no token to connect with. It passes, as a server that is away does."""


async def token_password(url: str) -> str | None:
    """Return the token that is the password of this URL, or None if it is none. Raises `NoToken`."""
    try:
        return await password_for(url)
    except IdentityUnavailable as error:
        raise NoToken(str(error)) from None


def place(parts: dict[str, Any]) -> str:
    """Return host, port and database name, and nothing else, as text."""
    host, port = parts.get("host") or "the local socket", parts.get("port") or 5432
    return f"database '{parts.get('dbname') or 'postgres'}' at {host}, port {port}"


def _parse(url: str) -> dict[str, Any]:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its message quotes the URL
        raise SettingsError("the database URL cannot be read", remedy=_shape()) from None
    if "@" in str(parts.get("host", "")):  # then the host begins with the end of a password
        raise SettingsError("the database URL has an '@' too many", remedy=f"write it as %40 in a password; {_shape()}")
    return dict(parts)


def _shape() -> str:
    return "the form is postgresql://user:password@host:5432/name"


def _reason(exc: psycopg.OperationalError, password: object) -> str:
    first = str(exc).strip().splitlines()[0] if str(exc).strip() else "no reason given"
    text = first.removeprefix("connection failed: ")
    return text.replace(str(password), "***") if password else text
