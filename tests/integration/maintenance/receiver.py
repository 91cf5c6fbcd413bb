"""A little HTTP server that is called, and those who call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from geomill.domain.engine.callback import Allowance
from geomill.engine.maintenance.callbacks import CallbackCaller, CallbackOptions
from geomill.store import callbacks
from tests.integration.maintenance.conftest import JobDatabase

SECRET = "a secret of some length"
LOOPBACK = Allowance.of(["127.0.0.1"])


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A little HTTP server: answers with the statuses it is given, the last one again and again."""

    statuses: list[int] = field(default_factory=lambda: [204])
    requests: list[Request] = field(default_factory=list)
    hold: asyncio.Event | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append(Request(first.split()[1], headers, body))
        self.arrived.set()
        if self.hold:
            await self.hold.wait()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        location = f"Location: http://127.0.0.1:{self.port}/elsewhere\r\n" if 300 <= status < 400 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    http_receiver = Receiver()
    server = await asyncio.start_server(http_receiver.serve, "127.0.0.1", 0)
    http_receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield http_receiver


MakeCaller = Callable[..., CallbackCaller]


@pytest.fixture
async def make_caller(db: JobDatabase) -> AsyncIterator[MakeCaller]:
    callers: list[CallbackCaller] = []

    def make(**options: Any) -> CallbackCaller:
        values = {"secret": SECRET, "allowed": LOOPBACK, "public_url": "https://geo.example/", **options}
        callers.append(CallbackCaller(db.pool, CallbackOptions(**values)))
        return callers[-1]

    yield make
    for caller in callers:
        await caller.stop()


async def call(caller: CallbackCaller) -> int:
    begun = await caller.run_once()
    await caller.idle()
    return begun


async def make_due(db: JobDatabase) -> None:
    await db.rows("UPDATE dagapp.dag_callbacks SET due_at = now() WHERE status = 'pending'")


async def of_job(db: JobDatabase, job_id: str) -> Any:
    async with db.pool.connection() as conn:
        return (await callbacks.of_job(conn, job_id))[-1]
