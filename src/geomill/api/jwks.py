"""The public keys of the OIDC issuer, fetched on demand from the configured place and never from a URL in a token.

An unknown key id causes at most one fetch in half a minute. Fetched keys stay in use until the issuer answers again, so
an issuer that is down for a while locks nobody out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import jwt

from geomill.domain.addresses import is_loopback
from geomill.errors import UnavailableError

log = logging.getLogger(__name__)

FRESH_SECONDS = 600.0
PAUSE_SECONDS, PAUSE_AFTER_FAILURE = 30.0, 5.0
PATIENCE_SECONDS = 5.0
LARGEST = 1_000_000
KINDS = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("Ed",)}
"""The signature algorithms of each key type. Other types, such as shared secrets, are not used."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    kind: str
    algorithm: str | None
    key: Any

    def verifies(self, algorithm: str) -> bool:
        """Whether this key can verify the algorithm. A key that names an algorithm serves only that one."""
        return self.algorithm in (None, algorithm) and algorithm.startswith(KINDS[self.kind])


class IssuerKeys:
    def __init__(self, issuer: str, jwks_url: str | None) -> None:
        self._issuer, self._jwks_url = issuer, jwks_url
        self._keys: dict[str, IssuerKey] = {}
        self._fetched_at = self._may_fetch_at = float("-inf")
        self._fetching = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None

    async def get(self, key_id: str, algorithm: str) -> IssuerKey | None:
        """Return the key with that id, or None if there is none for that algorithm. Raises `UnavailableError` if the
        issuer has never answered."""
        if key_id not in self._keys:
            await self._refresh()
        elif time.monotonic() - self._fetched_at > FRESH_SECONDS:
            self._refresh_meanwhile()
        if not self._keys:
            raise UnavailableError("the keys of the token's issuer cannot be fetched", remedy="try again in a moment")
        key = self._keys.get(key_id)
        return key if key and key.verifies(algorithm) else None

    def _refresh_meanwhile(self) -> None:
        if self._background is None or self._background.done():
            self._background = asyncio.create_task(self._refresh(), name="fetch issuer keys")

    async def _refresh(self) -> None:
        async with self._fetching:
            if time.monotonic() < self._may_fetch_at:
                return
            try:
                self._keys = await self._fetch()
            except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
                log.warning("no keys from %s: %s", self._issuer, repr(error), extra={"action": "issuer keys"})
                self._may_fetch_at = time.monotonic() + PAUSE_AFTER_FAILURE
            else:
                self._fetched_at = time.monotonic()
                self._may_fetch_at = self._fetched_at + PAUSE_SECONDS

    async def _fetch(self) -> dict[str, IssuerKey]:
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
            url = self._jwks_url or await discover(client, self._issuer, "jwks_uri")
            document = await _get_json(client, url)
        return dict(_usable(document["keys"]))


async def discover(client: httpx.AsyncClient, issuer: str, name: str) -> str:
    """Return an address from the issuer's discovery document. Raises `ValueError` if it cannot be trusted."""
    document = await _get_json(client, issuer.rstrip("/") + "/.well-known/openid-configuration")
    if document["issuer"] != issuer:
        raise ValueError(f"its discovery document names another issuer, {document['issuer']!r}")
    url = httpx.URL(document[name])
    if url.scheme != "https" and not is_loopback(url.host):
        raise ValueError(f"its discovery document gives a {name} that is not https")
    return str(url)


async def _get_json(client: httpx.AsyncClient, url: str) -> Any:
    """Fetch a JSON document. Redirects are not followed."""
    async with client.stream("GET", url) as answer:
        answer.raise_for_status()
        if answer.status_code != 200:
            raise ValueError(f"{url} answers {answer.status_code}")
        body = b""
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > LARGEST:
                raise ValueError(f"{url} answers with more than {LARGEST} bytes")
    return json.loads(body)


def _usable(entries: list[dict[str, Any]]) -> Iterator[tuple[str, IssuerKey]]:
    """Yield the signature keys by id. An issuer may also publish encryption keys and unknown types."""
    for entry in entries:
        if entry.get("kty") in KINDS and entry.get("use", "sig") == "sig":
            try:
                key = jwt.PyJWK(entry).key
            except jwt.PyJWTError as error:
                log.info("a key of the issuer is not used: %s", error, extra={"action": "issuer keys"})
            else:
                yield entry.get("kid", ""), IssuerKey(entry["kty"], entry.get("alg"), key)
