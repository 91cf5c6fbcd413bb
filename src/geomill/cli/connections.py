"""Limits on the connections of a server: the size and duration of a request, and the connections of one address.

uvicorn has no limit on the size of a request's head and no deadline for it; `BodyLimit` refuses large bodies. Here the
bytes of a head are counted before they are parsed, head and body have deadlines, and each address has a number of
connections. A connection beyond that number replaces the oldest idle one of the same address, so half-sent requests
displace only each other. A trusted proxy has no limit: all its callers share its address, and the proxy counts them.

Known weakness: a caller who reads an answer slowly keeps its connection, within the number it may have.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import BaseTransport, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from geomill.api.problems import MEDIA_TYPE, respond

log = logging.getLogger(__name__)

Network = IPv4Network | IPv6Network
AT_ONCE = 8
"""The number of requests that begin in one round of the event loop."""
SLOWEST_STREAM = 1000
"""The bytes a second that a streamed body must have at least, such as an upload."""
NEIGHBOURS = 64
"""The prefix length of an IPv6 network that counts as one address: providers give a customer a whole /64."""


class RequestTurns:
    """Begins a few requests in each round of the event loop, taking the addresses in turn. Hundreds of requests from
    one address therefore do not delay those of others."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._begun = 0

    def begin(self, address: str, start: Callable[[], None]) -> None:
        if self._begun < AT_ONCE and not self._waiting:
            self._count()
            start()
        else:
            self._waiting.setdefault(address, deque()).append(start)

    def _count(self) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next)
        self._begun += 1

    def _next(self) -> None:
        self._begun = 0
        for address in list(self._waiting)[:AT_ONCE]:
            waiting = self._waiting.pop(address)
            start = waiting.popleft()
            if waiting:
                self._waiting[address] = waiting  # behind the others
            self._count()
            start()


@dataclass(slots=True)
class Limits:
    """The limits of every connection of a server, and its open connections."""

    head_bytes: int = 65_536
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    per_address: int = 200
    trusted: Sequence[Network] = ()
    open: dict[str, dict[BoundedProtocol, None]] = field(default_factory=dict)
    """By address, the oldest first."""
    turns: RequestTurns = field(default_factory=RequestTurns)

    def admit(self, protocol: BoundedProtocol, address: str) -> bool:
        """Return whether the connection may stay. At the limit, an idle connection of the same address is closed for
        it."""
        connections = self.open.setdefault(address, {})
        if len(connections) >= self.per_address:
            idle = next((connection for connection in connections if connection.idle), None)
            if idle is None:
                return False
            idle.drop()
            connections.pop(idle, None)
        connections[protocol] = None
        return True

    def leave(self, protocol: BoundedProtocol, address: str) -> None:
        connections = self.open.get(address, {})
        connections.pop(protocol, None)
        if not connections:
            self.open.pop(address, None)

    def counted(self, host: str) -> str | None:
        """Return the name under which a host's connections are counted, or None if they are not counted."""
        try:
            address = ip_address(host)
        except ValueError:
            return host
        if any(address in network for network in self.trusted):
            return None
        if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
            return str(IPv6Network((address, NEIGHBOURS), strict=False))
        return host


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, *arguments: Any, limits: Limits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._address: str | None = None
        self._in_head, self._in_body, self._refused = True, False, False
        self._begun = False
        self._head_bytes = 0
        self._deadline: TimerHandle | None = None
        self._body_bytes = 0

    @property
    def idle(self) -> bool:
        """Whether it has no request under way: it has sent half a head, or waits between two requests."""
        return not self._in_body and self._cycle is None

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        """The request whose answer is not complete yet."""
        latest: RequestResponseCycle | None = getattr(self, "cycle", None)
        return None if latest is None or latest.response_complete else latest

    def drop(self) -> None:
        self._refused = True
        self.transport.abort()

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn says it more narrowly than asyncio
        self._address = self._limits.counted(self.client[0]) if self.client else None
        if self._address is not None and not self._limits.admit(self, self._address):
            self._address = None
            self._refuse(503, "too_many_connections", f"an address has at most {self._limits.per_address} connections")
            return
        self._set_deadline(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        if self._address is not None:
            self._limits.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._begun = True
        super().data_received(data)
        if self._in_head and not self._refused:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._refuse_head()
            elif self._deadline is None:
                self._set_deadline(self._limits.head_seconds)
        elif self._in_body and self._deadline is None:
            self._set_deadline(self._limits.body_seconds)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._clear_deadline()
        self._in_head, self._in_body = False, True
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self._limits.head_bytes:
            self._refuse_head()
            return
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._limits.turns.begin(self._address or "", partial(super()._start_asgi_task, cycle, app))

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            self._body_bytes += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._clear_deadline()
        self._in_body = False
        if not self._refused:
            super().on_message_complete()

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._is_moving():
            self._body_bytes = 0
            self._set_deadline(self._limits.body_seconds)
            return
        if (self._in_body and (self._cycle is None or self._cycle.response_started)) or not self._begun:
            self._refused = True
            self.transport.close()  # it has its answer, or has sent nothing
            return
        seconds = self._limits.body_seconds if self._in_body else self._limits.head_seconds
        self._refuse(408, "too_slow", f"the request was not complete after {seconds:g} s")

    def _is_moving(self) -> bool:
        """Whether a body that the application takes in as a stream goes on, as far as the application lets it."""
        cycle = self._cycle if self._in_body else None
        if cycle is None or not cycle.scope.get("geomill.streaming"):
            return False
        return self.flow.read_paused or self._body_bytes >= SLOWEST_STREAM * self._limits.body_seconds

    def _refuse_head(self) -> None:
        self._refuse(431, "too_large", f"the head of the request is larger than {self._limits.head_bytes} bytes")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer instead of the application and close the connection."""
        self._refused = True
        self._clear_deadline()
        log.info("refused: %s", detail, extra={"action": "refused", "address": self.client[0] if self.client else ""})
        if self._cycle is not None:
            self._cycle.disconnected = True  # wakes the application if it waits for the body
            self._cycle.message_event.set()
        body = bytes(respond("", status, code, detail).body)
        head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()
