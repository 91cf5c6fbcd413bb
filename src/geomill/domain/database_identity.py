"""Marks database URLs whose password is a token of a managed identity.

The mark is the value of libpq's `passfile`, the place that a password is read from. So a marked URL stays valid for
every library, and can be handed to another process as text. Where the mark is not understood, there is no such file,
and the server refuses the session without a password.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from geomill.domain.addresses import is_loopback

MARK = "azure-identity:"
_MARKED = re.compile(r"[?& ]passfile=azure-identity(?::|%3A)([\w.~%-]*)")
ENCRYPTED = ("require", "verify-ca", "verify-full")
"""The values of `sslmode` under which a token never travels in plain text."""


def with_identity(url: str, client_id: str) -> str:
    """Return the URL with the mark, unless it has a password or says where its password is."""
    parts = urlsplit(url)
    if parts.password or {"password", "passfile"} & dict(parse_qsl(parts.query)).keys():
        return url
    separator = "&" if parts.query else "?"
    return f"{url}{separator}passfile={quote(MARK + client_id, safe='')}"


def may_carry_token(url: str) -> bool:
    """Whether a token in a session of this URL is encrypted, or stays on this machine."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if query.get("sslmode") in ENCRYPTED:
        return True
    hosts = query.get("hostaddr") or query.get("host") or unquote(parts.netloc.rpartition("@")[2])
    return all(_is_here(host) for host in hosts.split(","))


def _is_here(host: str) -> bool:
    """Whether one host, perhaps with a port, is this machine. Without a host, libpq's own variables name one."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.startswith("/") or is_loopback(name)


def client_of(conninfo: str) -> str | None:
    """Return the client id in the mark of a URL or of a string for libpq: empty for the machine's own identity, None if
    there is no mark."""
    mark = _MARKED.search(conninfo)
    return unquote(mark[1]) if mark else None
