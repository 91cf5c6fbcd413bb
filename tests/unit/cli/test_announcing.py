"""`geomill up` says that it is ready, or why not, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from geomill.cli import up

READY = {"status": "ready", "reasons": []}
WAITING = {"status": "not_ready", "reasons": ["nobody serves the queue 'gpu': what is in it waits"]}


class FakeGateway(BaseHTTPRequestHandler):
    """Not ready at the first two looks."""

    looks = 0

    def do_GET(self) -> None:
        type(self).looks += 1
        ready = type(self).looks > 2
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(json.dumps(READY if ready else WAITING).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    FakeGateway.looks = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeGateway) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


async def test_it_says_why_not_once_and_then_that_it_is(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "PATIENCE_SECONDS", 0.0)
    async with asyncio.timeout(20):
        await up._announce(address, None, asyncio.Event())
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"geomill runs at {address}, but is not ready: {WAITING['reasons'][0]}"
    assert second.startswith(f"geomill is ready: {address} ")
