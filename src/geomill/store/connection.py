"""One connection, or an error that says where there was none and never with what password."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from geomill.errors import DatabaseUnreachable, SettingsError

_REMEDY = "check that the server runs and that GEOMILL_DATABASE_URL is right, or unset it to use a private cluster"


async def connect(url: str, *, connect_timeout: int = 10) -> psycopg.AsyncConnection[Any]:
    """An autocommit connection; transactions are begun where they are meant."""
    parts = _parse(url)
    parts.setdefault("connect_timeout", connect_timeout)
    parts.setdefault("application_name", "geomill")
    try:
        return await psycopg.AsyncConnection.connect(**parts, autocommit=True)
    except psycopg.OperationalError as exc:
        reason = _reason(exc, parts.get("password"))
        raise DatabaseUnreachable(f"no connection to {place(parts)}: {reason}", remedy=_REMEDY) from None


def place(parts: dict[str, Any]) -> str:
    """Host, port and database name, and nothing else."""
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
