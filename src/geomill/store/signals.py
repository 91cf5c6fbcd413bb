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
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow

from geomill.errors import DatabaseUnreachable
from geomill.remedies import CHECK_DATABASE
from geomill.sql import queries
from geomill.store.connection import attentive, token_password
from geomill.store.pool import CONNECTION, Connection, make_ready
from geomill.store.session import pauses

log = logging.getLogger(__name__)

START_SECONDS = 120.0
"""A process that cannot register for that long ends with the reason."""


def queue_channel(queue_name: str) -> str:
    return f"q:{queue_name}"[:63]


def worker_channel(worker_id: str) -> str:
    return f"w:{worker_id}"[:63]


def direct_call(queue_name: str) -> str:
    """Return the payload by which one worker learns that a queue has messages for it."""
    return f"d:{queue_name}"


def owner_channel(owner_id: str) -> str:
    return f"o:{owner_id}"[:63]


ORPHANS_CHANNEL = "orphans"
"""Notified when jobs were left without an owner on purpose."""


SCHEMA_CHANNEL = "schema"
"""Notified after a migration. Every process listens to it, to drop the plans of its session before they are refused."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A notification to be sent. Listeners of the channel hear the payload, or the channel's name without one."""

    channel: str
    payload: str = ""


def call_parameters(calls: Iterable[Call]) -> dict[str, list[str]]:
    unique = sorted(set(calls))
    return {"channels": [call.channel for call in unique], "payloads": [call.payload for call in unique]}


async def send(conn: Connection, calls: Collection[Call]) -> None:
    if calls:
        await conn.execute(queries("queue").notify, call_parameters(calls))


async def notify(conn: Connection, channels: Iterable[str]) -> None:
    await send(conn, [Call(channel) for channel in channels])


class Signals:
    """Listens on a session of its own, and keeps the channels that were notified since the last wait."""

    def __init__(self, url: str, channels: Collection[str], on_connect: Callable[[Connection], Awaitable[Any]]) -> None:
        self._url = url
        self._channels = tuple(channels)
        self._on_connect = on_connect
        self._event = asyncio.Event()
        self._heard: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._session: DictRow | None = None
        """Process id and start of the session that listened last."""
        self._trouble = "no attempt has ended"
        self.connected = asyncio.Event()

    async def start(self) -> None:
        """Returns when the session listens. Raises `DatabaseUnreachable` if there is none within START_SECONDS."""
        self._task = asyncio.create_task(self._listen_for_ever(), name="signals")
        try:
            async with asyncio.timeout(START_SECONDS):
                await self.connected.wait()
        except TimeoutError:
            await self.stop()
            raise DatabaseUnreachable(
                f"the database let no process register within {START_SECONDS:g} s: {self._trouble}",
                remedy=CHECK_DATABASE.shell,
            ) from None

    async def run(self) -> None:
        """Run as a duty of the process: return when listening ends, which only `stop` brings about."""
        assert self._task is not None
        await asyncio.wait([self._task])
        self._task.result()

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def poke(self, channel: str) -> None:
        """Act as if the channel was notified, from inside the process. A payload is poked instead of its channel."""
        self._heard.add(channel)
        self._event.set()

    async def wait(self, seconds: float | None = None) -> set[str]:
        """Return the channels that were notified; all of them when the time is up, as notifications may be lost.
        Instead of the channel of a notification with a payload, the payload is returned."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return set(self._channels)
        self._event.clear()
        channels, self._heard = self._heard, set()
        return channels

    async def _listen_for_ever(self) -> None:
        """Listen, and begin again after any error: a process that silently stopped listening would look alive."""
        attempts = pauses()
        while True:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001
                if self.connected.is_set():
                    self.connected.clear()
                    attempts = pauses()
                self._trouble = str(error)
                pause = next(attempts)
                log.warning("the listening session is lost, the next attempt is in %s s: %s", pause, error)
                await asyncio.sleep(pause)

    async def _listen(self) -> None:
        password = await token_password(self._url)
        conn: Connection = await AsyncConnection.connect(attentive(self._url), password=password, **CONNECTION)
        async with conn:
            await make_ready(conn)
            for channel in (*self._channels, SCHEMA_CHANNEL):
                await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            await self._end_predecessor(conn)
            await self._on_connect(conn)
            self.connected.set()
            for channel in self._channels:
                self.poke(channel)
            await self._hear(conn)

    async def _end_predecessor(self, conn: Connection) -> None:
        """End the session before on the server, which may not have noticed that it is dead and still keeps its lock."""
        if self._session:
            await conn.execute(queries("queue").end_session, self._session)
        cursor = await conn.execute(queries("queue").this_session)
        self._session = await cursor.fetchone()

    async def _hear(self, conn: Connection) -> None:
        """Receive notifications until the session ends. The event loop watches the socket all the time: psycopg's own
        `notifies` starts and stops watching for each notification, which takes longer than the rest of a wake-up."""
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
                    self.poke((notification.extra or notification.relname).decode())

        loop.add_reader(descriptor, readable)
        try:
            await lost
        finally:
            if not lost.done() or lost.cancelled():
                loop.remove_reader(descriptor)
