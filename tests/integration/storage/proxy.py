"""Stands before a store and does to its requests what networks and busy servers do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

Kind = Literal["busy", "hang", "refuse", "cut request", "cut answer"]
BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class ProxyFault:
    kind: Kind
    requests: str = ""
    """A pattern of the requests that it concerns: their first line and their headers."""
    times: int = 1


@dataclass
class Proxy:
    upstream: str
    url: str = ""
    faults: list[ProxyFault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    hit: int = 0
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request on each connection."""
        self.open.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.partition(b"\r\n")[0].decode()
            self.requests.append(line)
            await self._answer(reader, writer, head, self._fault(head.decode()))
        writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()
        self.open.discard(writer)

    def _fault(self, head: str) -> Kind | None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.requests, head):
                fault.times -= 1
                self.hit += 1
                return fault.kind
        return None

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, fault: Kind | None
    ) -> None:
        length = int(next(iter(re.findall(rb"(?i)\r\ncontent-length: (\d+)", head)), 0))
        if fault == "refuse":
            return
        if fault == "cut request":
            await reader.readexactly(length // 2)
            return
        body = await reader.readexactly(length)
        if fault == "hang":
            await reader.read()  # until the client gives up
            return
        answer = BUSY if fault == "busy" else await self._forward(head, body)
        if fault == "cut answer":
            writer.write(answer[: len(answer) // 2])
            await writer.drain()
            return
        writer.write(answer)
        await writer.drain()

    async def _forward(self, head: bytes, body: bytes) -> bytes:
        place = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        self.open.add(writer)
        writer.write(_closing(head) + body)
        answer = await reader.read()
        writer.close()
        self.open.discard(writer)
        return _closing(answer)

    async def close(self) -> None:
        """Cut off open connections, so that the garbage collector has nothing to complain about."""
        for writer in self.open:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def _closing(message: bytes) -> bytes:
    first, _, rest = re.sub(rb"(?i)\r\nconnection: [^\r]*", b"", message, count=1).partition(b"\r\n")
    return first + b"\r\nConnection: close\r\n" + rest


@asynccontextmanager
async def proxied(upstream: str) -> AsyncIterator[Proxy]:
    """`url` is the upstream's, with our port."""
    proxy = Proxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy.url = urlsplit(upstream)._replace(netloc=f"127.0.0.1:{port}").geturl()
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
