"""Limits that apply before a request is processed: the size of its body and the origin of a browser's request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api.problems import CODES, respond

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class BodyLimit:
    """Refuses a body by its announced length, or as soon as more bytes have arrived than allowed."""

    def __init__(
        self, app: ASGIApp, largest: int, largest_of: Callable[[Scope], int | None] = lambda _scope: None
    ) -> None:
        """`largest_of` returns the limit of a request that has one of its own."""
        self._app, self._largest, self._largest_of = app, largest, largest_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest = self._largest_of(scope) or self._largest
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > largest:
            await respond(scope["path"], 413, CODES[413], _detail(largest))(scope, receive, send)
            return
        received_bytes = 0

        async def counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > largest:
                raise HTTPException(413, _detail(largest))
            return message

        await self._app(scope, counted, send)


def _detail(largest: int) -> str:
    return f"the body is larger than {largest} bytes"


class BrowserGuard:
    """Keeps other people's web pages from talking to a gateway on this machine.

    Such a page has no credential, and browsers add none. But it could probe open routes: a page can send requests to
    127.0.0.1, and with a host name of its own that resolves there it could also read the answers. The `Origin` header
    reveals the first, the `Host` header the second.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str] = ()) -> None:
        """`hosts` are the names of a gateway on this machine; if empty, nothing is guarded. Pages from `origins` may
        call in addition to the gateway's own."""
        self._app, self._hosts, self._origins = app, frozenset(hosts), frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope)):
            status, detail = refusal
            await respond(scope["path"], status, CODES[status], detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        if not self._hosts:
            return None
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _name(host) not in self._hosts:
            return 421, "this gateway answers only to its own address; call it as 127.0.0.1 or localhost"
        origin = headers.get("origin")
        if origin and scope["method"] not in SAFE and origin not in self._origins and _place(origin) != host:
            return 403, "a page of another origin may not send this request"
        return None


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
