"""The rules of URLs that files are fetched from. An administrator allows them; a submitter only names them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from geomill.errors import Forbidden, InputError, Problem

LONGEST_URL = 2000
_REMEDY = "give an absolute URL such as https://data.example.org/roads.gpkg"


def check_prefix(prefix: str) -> None:
    """Raise `ValueError` unless the setting is a URL with a host and a path, without user, query and fragment."""
    parts = urlsplit(prefix)
    if parts.scheme not in ("https", "http") or not parts.hostname or not parts.path.startswith("/"):
        raise ValueError(f"'{prefix}' is not the beginning of a URL such as https://data.example.org/public/")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"'{prefix}' has a user, a query or a fragment, which the beginning of a URL may not have")


def check_source_url(url: str, prefixes: Sequence[str]) -> str:
    """Return the URL if a prefix allows it. Raises `InputError` or `Forbidden`."""
    if len(url) > LONGEST_URL or any(character.isspace() or not character.isprintable() for character in url):
        raise _wrong("url is too long, or has a space or a control character")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise _wrong("url cannot be read") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise _wrong("url must begin with https:// and have a host")
    if parts.username is not None or parts.password is not None:
        raise _wrong("url must not contain a user or a password")
    if not is_allowed(parts, prefixes):
        raise Forbidden(
            f"files may not be fetched from '{parts.scheme}://{parts.netloc}' at this path",
            remedy="upload the file, or ask an administrator to add the URL to GEOMILL_UPLOAD_FROM",
        )
    return url


def is_allowed(url: SplitResult, prefixes: Sequence[str]) -> bool:
    return any(_covers(urlsplit(prefix), url) for prefix in prefixes)


def _covers(prefix: SplitResult, url: SplitResult) -> bool:
    """Whether the URL is under the prefix. Whole parts of the path are compared: `/data` does not allow `/database`."""
    if (prefix.scheme, prefix.hostname, _port(prefix)) != (url.scheme, url.hostname, _port(url)):
        return False
    path = unquote(url.path) or "/"
    if "\\" in path or ".." in path.split("/"):
        return False
    folder = prefix.path if prefix.path.endswith("/") else f"{prefix.path}/"
    return path == prefix.path or path.startswith(folder)


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def file_name_of(url: str) -> str:
    """Return the last part of the path, which names the file unless the caller does."""
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _wrong(message: str) -> InputError:
    return InputError(message, remedy=_REMEDY, problems=[Problem("url", message, _REMEDY)])
