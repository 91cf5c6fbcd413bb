"""Shared behaviour of the services: problem documents for errors, headers for caches, security headers for pages."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api import problems
from geomill.domain.access.confidential import without_places
from geomill.serve.caching import Caching, NotModified, not_modified

log = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " worker-src blob:; child-src blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Content security policy. Pages load nothing from other hosts and run no inline scripts."""


Answer = tuple[int, str] | tuple[int, str, str]
"""Status, code and detail. Without a detail the response shows the error's own message."""


def prepare(app: FastAPI, statuses: Mapping[type[Exception], Answer]) -> None:
    """Install error handlers and middleware. `statuses` maps errors of the service's library to responses."""
    problems.install(app)
    app.add_exception_handler(NotModified, not_modified)
    for kind, answer in statuses.items():
        app.add_exception_handler(kind, _answer(*answer))
    app.add_middleware(Caching)
    app.add_middleware(_Secure)


def _answer(status: int, code: str, detail: str = ""):  # type: ignore[no-untyped-def]  # noqa: ANN202
    async def handler(request: Request, error: Exception) -> JSONResponse:
        level = logging.WARNING if status >= 500 else logging.INFO
        log.log(level, "refused: %s", error, extra={"action": "serve", "path": request.url.path})
        shown = detail or without_places(str(error)) or code.replace("_", " ")
        return problems.respond(request.url.path, status, code, shown)

    return handler


class _Secure:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
                if any(
                    name == b"content-type" and value.startswith(b"text/html") for name, value in message["headers"]
                ):
                    message["headers"].append((b"content-security-policy", POLICY.encode()))
                    message["headers"].append((b"referrer-policy", b"no-referrer"))
            await send(message)

        await self._app(scope, receive, secured)
