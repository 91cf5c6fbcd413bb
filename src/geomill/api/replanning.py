"""Repeats a request whose transaction met a query plan from before a migration.

The session itself repeats a single statement (`store/replanning.py`). A transaction is lost as a whole, so the request
begins again on a new session, before anything was sent. The first attempt committed nothing.
"""

from __future__ import annotations

import psycopg
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api.problems import REPEATED
from geomill.store.pool import Pool
from geomill.store.replanning import has_changed_plan

KEPT_BYTES = 1_000_000
"""The largest body that is kept for a second attempt. A request with a larger one is not repeated."""


class Replanning:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        attempt = _Attempt(receive, send)
        before = dict(scope)
        try:
            await self._app(scope, attempt.receive, attempt.send)
        except psycopg.errors.FeatureNotSupported as error:
            if attempt.answered or attempt.size > KEPT_BYTES or not has_changed_plan(error):
                raise
            pool: Pool = before["app"].state.pool
            await pool.drain()
            scope.update({**before, REPEATED: True})
            await self._app(scope, attempt.again, send)


class _Attempt:
    """Records what was read and whether an answer has begun."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._received: list[Message] = []
        self.size = 0
        self.answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        self.size += len(message.get("body", b""))
        if self.size <= KEPT_BYTES:
            self._received.append(message)
        return message

    async def again(self) -> Message:
        return self._received.pop(0) if self._received else await self._receive()

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)
