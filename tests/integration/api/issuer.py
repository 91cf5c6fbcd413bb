"""A small OIDC issuer: discovery, keys, tokens. Served over HTTP, on this machine."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from geomill.settings import AccessSettings

AUDIENCE = "geomill"


class Issuer:
    def __init__(self) -> None:
        self.requests: list[str] = []
        self.away = False
        self.keys: dict[str, Any] = {}
        self.published: list[dict[str, Any]] = []
        self.add_key("first")
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append(self.path)
                body = json.dumps(issuer.answer(self.path)).encode()
                self.send_response(503 if issuer.away else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}/realms/test"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str) -> Any:
        if path.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, *self.published]}

    def add_key(self, key_id: str, kind: str = "RSA") -> None:
        if kind == "RSA":
            key: Any = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            described = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
        else:
            key = ec.generate_private_key(ec.SECP256R1())
            described = json.loads(ECAlgorithm.to_jwk(key.public_key()))
        self.keys[key_id] = key
        self.published.append({**described, "kid": key_id, "use": "sig"})

    def withdraw(self, key_id: str) -> None:
        self.published = [key for key in self.published if key["kid"] != key_id]

    def claims(self, *roles: str, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, "roles": list(roles)}
        return {name: value for name, value in {**usual, **more}.items() if value is not None}

    def token(self, *roles: str, key_id: str = "first", algorithm: str = "RS256", **more: Any) -> str:
        return jwt.encode(self.claims(*roles, **more), self.keys[key_id], algorithm, headers={"kid": key_id})

    def settings(self, **more: Any) -> AccessSettings:
        return AccessSettings(oidc_issuer=self.url, oidc_audience=AUDIENCE, **more)
