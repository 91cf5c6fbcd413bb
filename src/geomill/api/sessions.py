"""Console sessions: verifies their tokens, and notes in the background which are used.

A verified session is kept for one second, so a revoked key ends its sessions within a second on every gateway, while a
map that loads fifty tiles costs one query.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from geomill.api.shared_lookup import SharedLookup
from geomill.domain.access.principal import Principal
from geomill.domain.access.session import ConsoleSession, SessionToken
from geomill.errors import Unauthenticated
from geomill.remedies import NEW_SIGN_IN_LINK
from geomill.settings import ConsoleSettings
from geomill.store import sessions
from geomill.store.pool import Connection, Pool

log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0
MOST_REMEMBERED = 1000
NOTE_SECONDS = 15.0
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Verified:
    session: ConsoleSession
    at: float


class Sessions:
    def __init__(self, pool: Pool, settings: ConsoleSettings) -> None:
        self._pool, self.settings = pool, settings
        self._lookup = SharedLookup(pool, self._read)
        self._verified: dict[str, _Verified] = {}
        self._used: set[str] = set()

    async def _read(self, conn: Connection, hashes: Collection[str]) -> Mapping[str, ConsoleSession]:
        return await sessions.find_many(conn, hashes, idle_seconds=self.settings.session_idle_seconds)

    async def find(self, token: SessionToken) -> ConsoleSession | None:
        """Return the session of a token, or None if it has ended or never existed."""
        name = token.hash()
        verified = self._verified.get(name)
        if verified and time.monotonic() - verified.at < FRESH_SECONDS:
            return verified.session
        self._verified.pop(name, None)
        session = await self._lookup.find(name)
        if session:
            self._used.add(session.token_hash)
            if len(self._verified) >= MOST_REMEMBERED:
                del self._verified[next(iter(self._verified))]
            self._verified[name] = _Verified(session, time.monotonic())
        return session

    async def begin(self, principal: Principal, key_id: str | None) -> tuple[SessionToken, ConsoleSession]:
        token = SessionToken.new()
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            session = await sessions.begin(conn, token, principal, key_id=key_id, seconds=self.settings.session_seconds)
        return token, session

    async def enter(self, code: str) -> tuple[SessionToken, ConsoleSession]:
        """Begin the session of a sign-in link. Raises `Unauthenticated` if the link does not work any more."""
        link, token = SessionToken.parse(code), SessionToken.new()
        session = None
        if link:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                session = await sessions.enter(conn, link, token, seconds=self.settings.session_seconds)
        if session is None:
            raise Unauthenticated("the sign-in link has been used or has expired", remedy=NEW_SIGN_IN_LINK.http)
        return token, session

    async def create_link(self, principal: Principal, key_id: str | None) -> tuple[SessionToken, ConsoleSession]:
        token = SessionToken.new()
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            link = await sessions.create_link(
                conn, token, principal, key_id=key_id, seconds=self.settings.sign_in_link_seconds
            )
        return token, link

    async def rotate(self, old: SessionToken) -> SessionToken | None:
        """Give a session another token. Returns None if another request has just done so: its answer has the token."""
        token = SessionToken.new()
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            return token if await sessions.rotate(conn, old, token) else None

    async def end(self, token: SessionToken) -> None:
        self._verified.pop(token.hash(), None)
        async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
            await sessions.end(conn, token)

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[None]:
        """Record in the background which sessions are used, never within a request."""
        task = asyncio.create_task(self._note_again_and_again(), name="note sessions")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _note_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self.note()

    async def note(self) -> None:
        used, self._used = self._used, set()
        if not used:
            return
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                await sessions.used(conn, used)
        except psycopg.Error as error:
            log.warning("could not note which sessions were used: %s", error, extra={"action": "sessions"})
