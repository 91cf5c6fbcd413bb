"""Wake-ups between processes (LISTEN/NOTIFY). A lost one costs a poll interval, never a result.

Notifications of batches are sent after the commit, outside of the hot transaction: NOTIFY inside it takes a lock that
is global to the server. Submissions, claims, and results or rounds that come alone send theirs with the commit, which
is a round trip sooner.
The listening session also holds the process's liveness lock: when the session ends, the process counts as dead, and it
comes back under a new registration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row

from geomill.sql import queries
from geomill.store.pool import Connection

log = logging.getLogger(__name__)

RECONNECT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)


def queue_channel(queue_name: str) -> str:
    return f"q:{queue_name}"[:63]


def owner_channel(owner_id: str) -> str:
    return f"o:{owner_id}"[:63]


ORPHANS_CHANNEL = "orphans"
"""Fires when jobs were left without an owner on purpose."""


async def notify(conn: Connection, channels: Iterable[str]) -> None:
    unique = sorted(set(channels))
    if unique:
        await conn.execute(queries("queue").notify, {"channels": unique})


class Signals:
    """Listens on a session of its own. `heard` holds the channels that fired since the last wait."""

    def __init__(self, url: str, channels: Collection[str], on_connect: Callable[[Connection], Awaitable[Any]]) -> None:
        self._url = url
        self._channels = tuple(channels)
        self._on_connect = on_connect
        self._event = asyncio.Event()
        self._heard: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.connected = asyncio.Event()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._listen_for_ever(), name="signals")
        await self.connected.wait()

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def poke(self, channel: str) -> None:
        """The same as a notification, from inside the process."""
        self._heard.add(channel)
        self._event.set()

    async def wait(self, seconds: float | None = None) -> set[str]:
        """The channels that fired; all of them when the time is up, as nobody knows what was missed."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return set(self._channels)
        self._event.clear()
        heard, self._heard = self._heard, set()
        return heard

    async def _listen_for_ever(self) -> None:
        failures = 0
        while True:
            try:
                await self._listen()
            except psycopg.OperationalError as error:
                failures = 0 if self.connected.is_set() else failures + 1
                self.connected.clear()
                pause = RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)]
                log.warning("lost the listening session, again in %s s: %s", pause, error)
                await asyncio.sleep(pause)

    async def _listen(self) -> None:
        conn: Connection = await AsyncConnection.connect(self._url, autocommit=True, row_factory=dict_row)
        async with conn:
            for channel in self._channels:
                await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            await self._on_connect(conn)
            self.connected.set()
            for channel in self._channels:
                self.poke(channel)
            await self._hear(conn)

    async def _hear(self, conn: Connection) -> None:
        """Until the session ends. The event loop watches the socket all the time: psycopg's own `notifies` begins and
        ends to watch it for each notification, which takes longer than the rest of a wake-up."""
        loop, descriptor = asyncio.get_running_loop(), conn.fileno()
        lost: asyncio.Future[None] = loop.create_future()

        def readable() -> None:
            try:
                conn.pgconn.consume_input()
            except psycopg.OperationalError as error:
                loop.remove_reader(descriptor)  # at once: its number is free for another socket now
                lost.set_exception(error)
            else:
                while notification := conn.pgconn.notifies():
                    self.poke(notification.relname.decode())

        loop.add_reader(descriptor, readable)
        try:
            await lost
        finally:
            if not lost.done() or lost.cancelled():
                loop.remove_reader(descriptor)
