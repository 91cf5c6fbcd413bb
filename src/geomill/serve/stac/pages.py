"""The catalogue as pages for people. A browser asks for HTML; programs get JSON, as before."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.serve.answers import POLICY
from geomill.serve.pages import ENVIRONMENT

LARGEST = 2_000_000
"""The largest document in bytes that becomes a page. A larger one is sent as JSON."""
NO_PAGES = ("/api", "/files/", "/queryables")


class StacPages:
    """Shows JSON answers as pages to browsers. `?f=json` shows a browser the JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asks_for_page = _asks_for_page(scope)
        if scope.get("method") == "GET":
            scope["query_string"] = _without_format(scope["query_string"])
        if not asks_for_page:
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def collect(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body") and start is not None:
                await _answer(scope, start, bytes(body), send)

        await self._app(scope, receive, collect)


def _asks_for_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    format_asked = QueryParams(scope["query_string"]).get("f")
    html = format_asked == "html" or "text/html" in Headers(scope=scope).get("accept", "")
    return html and format_asked != "json" and not path.startswith(NO_PAGES)


def _without_format(query: bytes) -> bytes:
    """Return the query without `f`, which the STAC API does not know."""
    return b"&".join(part for part in query.split(b"&") if part not in (b"f=json", b"f=html"))


async def _answer(scope: Scope, start: Message, body: bytes, send: Send) -> None:
    headers = [(name, value) for name, value in start["headers"] if name.lower() != b"vary"]
    headers.append((b"vary", b"Accept, Authorization, X-API-Key"))
    is_json = any(name.lower() == b"content-type" and b"json" in value for name, value in headers)
    if start["status"] == 200 and is_json and len(body) <= LARGEST:
        body = _page(scope, json.loads(body)).encode()
        headers = [pair for pair in headers if pair[0].lower() not in (b"content-type", b"content-length", b"etag")]
        headers += [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"content-security-policy", POLICY.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
        ]
    await send({**start, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _page(scope: Scope, document: Any) -> str:
    root = scope.get("root_path", "")
    parts = [part for part in scope["path"].removeprefix(root).split("/") if part]
    crumbs = [{"part": "catalogue", "url": f"{root}/"}]
    crumbs += [
        {"part": part, "url": f"{root}/{quote('/'.join(parts[: place + 1]))}"} for place, part in enumerate(parts)
    ]
    title = (document.get("title") or document.get("id") if isinstance(document, dict) else None) or "Catalogue"
    template = {"title": title, "api_root": root}
    return ENVIRONMENT.get_template("document.html").render(response=document, template=template, crumbs=crumbs)
