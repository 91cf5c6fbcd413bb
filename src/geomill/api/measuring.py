"""Counts requests by route. Counting by path would add a time series for each job id."""

from __future__ import annotations

import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Measuring:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            _count(scope, status, time.perf_counter() - begun)


def _count(scope: Scope, status: int, seconds: float) -> None:
    figures: Any = scope["app"].state.figures
    route = getattr(scope.get("route"), "path", "other")
    method = scope["method"] if scope["method"] in _METHODS else "other"
    figures.requests.labels(method, route, str(status)).inc()
    if not route.endswith("/stream"):
        figures.seconds.labels(method, route).observe(seconds)


_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
