"""A local server that hands out tokens as Azure does: the protocol of Container Apps and App Service, and that of
virtual machines. The real azure-identity asks it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

HEADER = "a-secret-of-this-container"
KEY = "a key that signs tokens of the tests, and nothing else"
ALWAYS_STALE = 300
"""Seconds of life at which azure-identity no longer takes a token from its memory."""


@dataclass
class IdentityEndpoint:
    url: str = ""
    life: int = 86_400
    away: bool = False
    current: str = ""
    """The token that everybody gets, if several processes ask."""
    requests: list[dict[str, str]] = field(default_factory=list)
    on_issue: Callable[[str], None] = lambda _: None

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a container that has a managed identity."""
        return {"IDENTITY_ENDPOINT": f"{self.url}/msi/token", "IDENTITY_HEADER": HEADER}

    def rotate(self, resource: str) -> None:
        """Let everybody who asks from now on have the same, new token."""
        self.current = ""
        self.current = self.issue({"resource": resource})["access_token"]

    def issue(self, query: dict[str, str]) -> dict[str, Any]:
        self.requests.append(query)
        expires_at = int(time.time()) + self.life
        claims = {
            "aud": query["resource"],
            "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000001/",
            "oid": "00000000-0000-0000-0000-000000000002",
            "tid": "00000000-0000-0000-0000-000000000001",
            "nbf": int(time.time()) - 60,
            "iat": int(time.time()) - 60,
            "exp": expires_at,
            "number": len(self.requests),
        }
        if not (text := self.current):
            text = jwt.encode(claims, KEY)
            self.on_issue(text)
        return {
            "access_token": text,
            "expires_on": str(expires_at),
            "expires_in": str(self.life),  # virtual machines say this too
            "resource": query["resource"],
            "token_type": "Bearer",
        }


@contextmanager
def identity_endpoint() -> Iterator[IdentityEndpoint]:
    endpoint = IdentityEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if endpoint.away:
                self.answer(503, {"error": "unavailable"})
            elif parts.path == "/msi/token" and self.headers.get("X-IDENTITY-HEADER") != HEADER:
                self.answer(401, {"error": "unauthorized"})
            elif parts.path == "/metadata/identity/oauth2/token" and self.headers.get("Metadata") != "true":
                self.answer(400, {"error": "bad_request"})
            else:
                self.answer(200, endpoint.issue(query))

        def answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
