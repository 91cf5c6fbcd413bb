"""Cache headers: how long browsers and proxies may keep an answer.

The ETag of an answer depends on asset, revision and request. A client that has the current answer gets a 304 before any
pixel or row is read, but after the check that it may see the asset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill import __version__
from geomill.domain.assets.served import Served

PUBLIC_SECONDS = 60
"""How long caches may keep showing a public answer."""
NOT_PUBLIC = "private, no-cache"


class NotModified(Exception):  # noqa: N818  it is not an error
    """Ends a request whose answer the client already has."""


def note(request: Request, served: Served) -> None:
    """Record that the answer to this request is about that asset. Raises `NotModified`."""
    request.state.served = served
    if request.method in ("GET", "HEAD") and _matches(request.headers.get("if-none-match", ""), etag(request.scope)):
        raise NotModified


def tell(request: Request, headers: Mapping[str, str]) -> None:
    """Set headers of a 200 answer to this request. A 304 does not carry them."""
    request.state.extra_headers = headers


def etag(scope: Scope) -> str:
    served: Served = scope["state"]["served"]
    accept = Headers(scope=scope).get("accept", "")
    parts = (__version__, served.asset_id, str(served.revision), served.styles.tag, scope["path"], accept)
    text = "\n".join(parts).encode("utf-8", "surrogateescape") + b"\n" + scope.get("query_string", b"")
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


async def not_modified(request: Request, error: Exception) -> Response:
    del error
    return Response(status_code=304, headers=_headers(request.scope))


class Caching:
    """Adds cache headers to answers about an asset."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if message["status"] == 200 and scope["state"].get("served") and scope["method"] in ("GET", "HEAD"):
                    headers.update({**_headers(scope), **scope["state"].get("extra_headers", {})})
                elif "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store" if message["status"] >= 400 else NOT_PUBLIC
            await send(message)

        await self._app(scope, receive, named)


def _headers(scope: Scope) -> dict[str, str]:
    served: Served = scope["state"]["served"]
    cache_control = f"public, max-age={PUBLIC_SECONDS}" if served.public else NOT_PUBLIC
    return {"ETag": etag(scope), "Cache-Control": cache_control, "Vary": "Accept, Authorization, X-API-Key"}


def _matches(header: str, current: str) -> bool:
    return any(tag.strip().removeprefix("W/") in (current, "*") for tag in header.split(",")) if header else False
