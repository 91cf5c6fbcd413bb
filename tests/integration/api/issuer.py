"""A small OIDC issuer: discovery, keys, tokens. Served over HTTP, on this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from geomill.settings import AccessSettings

AUDIENCE = "geomill"


class Issuer:
    def __init__(self) -> None:
        self.requests: list[str] = []
        self.away = False
        self.grants: dict[str, tuple[dict[str, str], str]] = {}
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

            def do_POST(self) -> None:
                form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                answer = issuer.exchange(form)
                body = json.dumps(answer or {"error": "invalid_grant"}).encode()
                self.send_response(503 if issuer.away else 200 if answer else 400)
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
            return {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }
        return {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, *self.published]}

    def authorize(self, address: str, *roles: str, **more: Any) -> tuple[str, str]:
        """Sign somebody in as a browser would be at this address. Returns the code and the state for the way back."""
        asked = dict(parse_qsl(urlsplit(address).query))
        code = secrets.token_urlsafe(8)
        claims = {"aud": asked["client_id"], "nonce": asked["nonce"], **more}
        self.grants[code] = (asked, self.token(*roles, **claims))
        return code, asked["state"]

    def exchange(self, form: dict[str, str]) -> dict[str, str] | None:
        """Give the token for a code, once, if everything fits what was asked for."""
        asked, token = self.grants.pop(form["code"], ({}, ""))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        fits = all(asked.get(name) == form.get(name) for name in ("client_id", "redirect_uri"))
        if not fits or asked.get("code_challenge") != challenge.decode() or asked["code_challenge_method"] != "S256":
            return None
        return {"id_token": token, "token_type": "Bearer"}

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
