"""Connections that send too much, too slowly, or are too many: they are ended, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request

from geomill.api import create_app
from geomill.cli.connections import AT_ONCE, RequestTurns
from geomill.cli.serving import configuration
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.domain.engine.message import TASK_QUEUES
from geomill.sdk.registry import load_handlers
from geomill.settings import AccessSettings, ConnectionSettings, QueueSettings
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import bearing, make_key

HALF = b"GET / HTTP/1.1\r\nHost: x\r\n"
WHOLE = HALF + b"\r\n"
OTHER = "127.0.0.2"
"""An address of this machine that is not the attacker's."""


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def who(request: Request) -> dict[str, Any]:
        assert request.client is not None
        return {"address": request.client.host, "scheme": request.url.scheme}

    @app.post("/")
    async def read(request: Request) -> int:
        return len(await request.body())

    @app.post("/stream")
    async def stream(request: Request) -> int:
        request.scope["geomill.streaming"] = True
        return sum([len(part) async for part in request.stream()])

    @app.get("/slow")
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    return app


class Server:
    def __init__(self, settings: ConnectionSettings, app: FastAPI | None = None) -> None:
        config = configuration(app or application(), settings)
        config.port = 0
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Server:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._server.force_exit = self._server.should_exit = True
        self._thread.join()

    @contextmanager
    def connection(self, first: bytes = b"", address: str = "127.0.0.1") -> Iterator[Any]:
        import socket

        with socket.create_connection(
            ("127.0.0.1", self.port), timeout=30, source_address=(address, 0)
        ) as client_socket:
            client_socket.sendall(first)
            yield client_socket

    def get(self, path: str = "/", address: str = OTHER, **headers: str) -> httpx.Response:
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{self.port}", timeout=30) as client:
            return client.get(path, headers=headers)


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    def begin(app: FastAPI | None = None, **settings: Any) -> Server:
        return stack.enter_context(Server(ConnectionSettings(**settings), app))

    with ExitStack() as stack:
        yield begin


def answer(connection: Any) -> bytes:
    """All that comes until the other side ends the connection."""
    received = b""
    try:
        while more := connection.recv(65_536):
            received += more
    except ConnectionResetError:
        pass
    return received


def test_a_head_has_a_size(start: Callable[..., Server]) -> None:
    server = start(head_limit=8192)
    with server.connection(HALF + b"X-Large: " + b"x" * 7000 + b"\r\n\r\n") as accepted:
        assert accepted.recv(100).startswith(b"HTTP/1.1 200")
    with server.connection(HALF + b"X-Large: " + b"x" * 9000 + b"\r\n\r\n") as whole:
        assert b"431 Request Header Fields Too Large" in answer(whole)
    with server.connection(HALF + b"X-Large: " + b"x" * 9000) as half:
        refusal = answer(half)
        assert b"431 Request Header Fields Too Large" in refusal
        assert b"application/problem+json" in refusal
    with server.connection(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n") as address:
        assert b"431" in answer(address)
    with server.connection(HALF + b"".join(b"X-%d: y\r\n" % n for n in range(2000)) + b"\r\n") as many:
        assert b"431" in answer(many)


def test_a_head_that_never_ends(start: Callable[..., Server]) -> None:
    server = start()
    sent = 0
    with server.connection(HALF + b"X: ") as attacker:
        try:
            while sent < 80_000_000:
                attacker.sendall(b"x" * 65_536)
                sent += 65_536
        except OSError:
            pass
    assert sent < 20_000_000  # what the sockets' buffers hold, at most
    assert server.get().status_code == 200


def test_a_head_has_a_time(start: Callable[..., Server]) -> None:
    server = start(head_seconds=0.3)
    with server.connection(HALF) as half, server.connection() as silent:
        assert b"408 Request Timeout" in answer(half)
        assert answer(silent) == b""
    with server.connection(WHOLE) as second:
        assert second.recv(1000).startswith(b"HTTP/1.1 200")
        second.sendall(HALF)
        assert b"408" in answer(second)


def test_a_body_has_a_time(start: Callable[..., Server]) -> None:
    server = start(body_seconds=0.3)
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with server.connection(post + b"abcde") as half:
        assert b"408 Request Timeout" in answer(half)
    with server.connection(post + b"abcde") as whole:
        whole.sendall(b"fghij")
        received = b""
        while not received.endswith(b"10"):  # head and body may come apart
            received += (part := whole.recv(1000))
            assert part, received
    unread = b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with server.connection(unread) as answered:
        assert answer(answered).startswith(b"HTTP/1.1 404")
    assert server.get().status_code == 200


def test_a_streamed_body_must_only_go_on(start: Callable[..., Server]) -> None:
    server = start(body_seconds=0.3)
    post = b"POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n"
    with server.connection(post) as steady:
        for _ in range(10):
            steady.sendall(b"x" * 1000)
            time.sleep(0.1)
        received = b""
        while not received.endswith(b"10000"):
            received += (part := steady.recv(1000))
            assert part, received
    with server.connection(post + b"x" * 5000) as stalled:
        assert b"408 Request Timeout" in answer(stalled)


def test_half_sent_requests_displace_each_other(start: Callable[..., Server]) -> None:
    server = start(connections_per_address=20)
    with ExitStack() as stack:
        attackers = [stack.enter_context(server.connection(HALF)) for _ in range(60)]
        assert server.get(address="127.0.0.1").status_code == 200  # the attacker's own address
        assert server.get(address=OTHER).status_code == 200
        assert [answer(attacker) for attacker in attackers[:39]] == [b""] * 39
        attackers[-1].sendall(b"\r\n")
        assert attackers[-1].recv(100).startswith(b"HTTP/1.1 200")


def test_busy_connections_are_not_displaced(start: Callable[..., Server]) -> None:
    server = start(connections_per_address=5)
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(server.connection(WHOLE.replace(b"/ ", b"/slow ", 1)))
        # the fifth is under way as soon as a sixth is refused
        deadline = time.monotonic() + 20
        while server.get(address="127.0.0.1").status_code == 200:
            assert time.monotonic() < deadline
        refused = server.get(address="127.0.0.1")
        assert (refused.status_code, refused.json()["code"]) == (503, "too_many_connections")
        assert server.get(address=OTHER).status_code == 200


def test_nobody_is_believed_by_default(start: Callable[..., Server]) -> None:
    forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    assert start().get(**forwarded).json() == {"address": OTHER, "scheme": "http"}
    believing = start(trusted_proxies=["127.0.0.0/30", "::1"], connections_per_address=1)
    assert believing.get(**forwarded).json() == {"address": "203.0.113.9", "scheme": "https"}
    assert believing.get(address="127.0.0.9", **forwarded).json()["address"] == "127.0.0.9"
    with ExitStack() as stack:  # a proxy has no limit: its connections are everybody's
        halves = [stack.enter_context(believing.connection(HALF, OTHER)) for _ in range(10)]
        for half in halves:
            half.sendall(b"\r\n")
            assert half.recv(100).startswith(b"HTTP/1.1 200")


def test_addresses_are_counted_by_their_network() -> None:
    from ipaddress import ip_network

    from geomill.cli.connections import Limits

    limits = Limits(trusted=[ip_network("10.0.0.0/8")])
    assert limits.counted("2001:db8::1") == limits.counted("2001:db8::ffff:2") == "2001:db8::/64"
    assert limits.counted("2001:db8:0:1::1") != limits.counted("2001:db8::1")
    assert (limits.counted("192.0.2.1"), limits.counted("10.1.2.3")) == ("192.0.2.1", None)


@pytest.mark.slow
def test_streams_of_one_caller_are_limited(start: Callable[..., Server], database: str) -> None:
    workflow_registry = WorkflowRegistry.load([], handlers=load_handlers().info, queues=TASK_QUEUES)
    server = start(create_app(database, workflow_registry, QueueSettings(), AccessSettings(), streams_per_caller=3))
    first, second = (asyncio.run(make_key(database, Role.OPERATOR)) for _ in range(2))
    url = f"http://127.0.0.1:{server.port}"
    job = httpx.post(f"{url}/api/v1/jobs", json={"workflow_id": "hello_world"}, headers=bearing(first)).json()

    def stream(key: Secret) -> bytes:
        """Nobody claims the job, so what is admitted does not end."""
        lines = [
            f"GET {job['stream_url']} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {key.reveal()}",
            "",
            "",
        ]
        return "\r\n".join(lines).encode()

    with ExitStack() as stack:
        begun = [stack.enter_context(server.connection(stream(first))) for _ in range(3)]
        assert all(connection.recv(15) == b"HTTP/1.1 200 OK" for connection in begun)
        refused = stack.enter_context(server.connection(stream(first)))
        assert b"429 Too Many Requests" in refused.recv(1000)
        assert stack.enter_context(server.connection(stream(second))).recv(15) == b"HTTP/1.1 200 OK"
        begun[0].close()
        deadline = time.monotonic() + 20
        while b"429" in stack.enter_context(server.connection(stream(first))).recv(1000):
            assert time.monotonic() < deadline


async def test_addresses_take_turns() -> None:
    turns, begun = RequestTurns(), []
    done = asyncio.Event()
    for number in range(100):
        turns.begin("flood", partial(begun.append, number))
    turns.begin("other", partial(begun.append, -1))
    turns.begin("other", done.set)
    await asyncio.wait_for(done.wait(), 10)
    assert begun.index(-1) <= AT_ONCE + 1
    while len(begun) < 101:  # noqa: ASYNC110  each round of the loop begins some
        await asyncio.sleep(0)
    assert [number for number in begun if number >= 0] == list(range(100))
