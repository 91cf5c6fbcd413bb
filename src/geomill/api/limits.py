"""What a request may be before anything looks at it: how large, and from where a browser may send it."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api.problems import CODES, respond

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class BodyLimit:
    """Refuses a body by its announced length, or as soon as more has come than may."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > self._largest:
            await respond(scope["path"], 413, CODES[413], self._detail())(scope, receive, send)
            return
        received_bytes = 0

        async def counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._largest:
                raise HTTPException(413, self._detail())
            return message

        await self._app(scope, counted, send)

    def _detail(self) -> str:
        return f"the body is larger than {self._largest} bytes"


class BrowserGuard:
    """A web page of somebody else must not even try to talk to a gateway on this machine.

    It has no credential, and browsers add none to what it sends. But it could probe what is open and guess the rest: a
    page can send requests to 127.0.0.1, and by a name of its own that leads there it could also read the answers. The
    first shows in the Origin, the second in the Host.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str] = ()) -> None:
        """`hosts` are the names by which a gateway on this machine is called; others have none, and are not guarded.
        `origins` are those whose pages may call beside its own."""
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
            return 421, "this gateway answers to its own address only; call it as 127.0.0.1 or localhost"
        origin = headers.get("origin")
        if origin and scope["method"] not in SAFE and origin not in self._origins and _place(origin) != host:
            return 403, "a page of another origin may not do this"
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
