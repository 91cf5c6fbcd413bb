"""Ends a stream when the session that opened it ends. Other requests are short; a stream would outlive its session."""

from __future__ import annotations

import asyncio

import psycopg
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.api.sessions import Sessions
from geomill.domain.access.session import SessionToken

LOOK_SECONDS = 2.0


async def run_while_valid(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, sessions: Sessions, token: SessionToken
) -> None:
    """Run the application until it ends or the session does. A database that does not answer ends nothing."""
    started = False

    async def note(message: Message) -> None:
        nonlocal started
        started = started or message["type"] == "http.response.start"
        await send(message)

    stream = asyncio.ensure_future(app(scope, receive, note))
    try:
        while not (await asyncio.wait({stream}, timeout=LOOK_SECONDS))[0]:
            if not await _is_valid(sessions, token):
                stream.cancel()
                await asyncio.wait({stream})
                break
    finally:
        stream.cancel()
    if stream.cancelled():
        if started:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    await stream


async def _is_valid(sessions: Sessions, token: SessionToken) -> bool:
    try:
        return await sessions.find(token) is not None
    except psycopg.Error:
        return True
