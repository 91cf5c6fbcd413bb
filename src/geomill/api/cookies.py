"""The cookie of a console session: its name, its attributes, and the proof that our own page sent a request with it."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import URL, Headers
from starlette.responses import Response
from starlette.types import Scope

from geomill.domain.access.session import SessionToken
from geomill.errors import Forbidden

PROOF_HEADER = "X-Geomill-Console"
"""A header that a page of another origin cannot send: its browser would ask us first, and we say no."""


def is_secure(scope: Scope, public_url: str = "") -> bool:
    """Whether the browser speaks https: to us, to a proxy that we trust, or to the address that we are known by."""
    return URL(scope=scope).scheme == "https" or public_url.startswith("https://")


def cookie_name(scope: Scope, *, secure: bool) -> str:
    """Return the name. Browsers accept `__Host-` only with Secure and without a domain. Cookies of one machine are
    shared by all of its ports, so the port is part of the name."""
    port = urlsplit(f"//{Headers(scope=scope).get('host', '')}").netloc.rpartition(":")[2]
    suffix = f"-{port}" if port.isdecimal() else ""
    return f"{'__Host-' if secure else ''}geomill-session{suffix}"


def session_token(scope: Scope) -> SessionToken | None:
    """Return the token of the session cookie, or None if there is none that could be right."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load("; ".join(Headers(scope=scope).getlist("cookie")))
    except CookieError:
        return None
    for secure in (True,) if is_secure(scope) else (True, False):
        if morsel := cookies.get(cookie_name(scope, secure=secure)):
            return SessionToken.parse(morsel.value)
    return None


def set_session(response: Response, scope: Scope, token: SessionToken, *, seconds: int, public_url: str) -> None:
    secure = is_secure(scope, public_url)
    response.set_cookie(
        cookie_name(scope, secure=secure),
        token.reveal(),
        max_age=seconds,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
    response.headers["Cache-Control"] = "no-store"


def clear_session(response: Response, scope: Scope) -> None:
    for secure in (True, False):
        name = cookie_name(scope, secure=secure)
        response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")


def require_own_page(scope: Scope) -> None:
    """Raise `Forbidden` unless our own page sent the request. Browsers add cookies by themselves, so a cookie alone
    proves nothing about the page."""
    headers = Headers(scope=scope)
    host, origin = headers.get("host", ""), headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != host
    if foreign or headers.get("sec-fetch-site", "same-origin") != "same-origin" or PROOF_HEADER not in headers:
        raise Forbidden(
            "a request that changes something with a session must come from the console itself",
            remedy=f"send the header {PROOF_HEADER} from a page of this origin, or use a key",
        )
