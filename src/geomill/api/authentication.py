"""Turns a credential into a principal. The database verifies keys, the OIDC issuer verifies tokens.

Principals are cached. A revoked key is refused everywhere within `FRESH_SECONDS`, and until then a request costs no
round trip. While the database is unreachable, recently verified credentials stay valid for `GRACE_SECONDS`, so that
monitoring keeps working.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import psycopg
from pydantic import SecretStr

from geomill.api.rates import Buckets
from geomill.api.shared_lookup import SharedLookup
from geomill.api.tokens import Tokens
from geomill.domain.access.api_key import PREFIX, Secret
from geomill.domain.access.principal import Principal, Role
from geomill.errors import TooManyRequests, Unauthenticated, UnavailableError
from geomill.remedies import MIGRATE
from geomill.store import keys
from geomill.store.passing import passes
from geomill.store.pool import Pool

log = logging.getLogger(__name__)

FRESH_SECONDS, GRACE_SECONDS = 10.0, 600.0
MOST_REMEMBERED = 1000
PATIENCE_SECONDS = 5.0
NOTE_SECONDS = 5.0
FAILURES_PER_SECOND, FAILURES_AT_ONCE = 1.0, 30
MONITORING = Principal(subject="monitoring", roles=frozenset({Role.READER}), platform_id=None)


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    verified_at: float
    looked_at: float

    @property
    def fresh(self) -> bool:
        return time.monotonic() - self.looked_at < FRESH_SECONDS

    @property
    def recent(self) -> bool:
        return time.monotonic() - self.verified_at < GRACE_SECONDS


class CallerAuthenticator(Protocol):
    async def principal(self, credential: str, address: str) -> Principal: ...
    def noting(self) -> AbstractAsyncContextManager[None]: ...


class Authenticator:
    def __init__(self, pool: Pool, tokens: Tokens | None) -> None:
        self._pool, self._tokens, self._keys = pool, tokens, SharedLookup(pool, keys.find_many)
        self._known: dict[bytes, _Known] = {}
        self._failures = Buckets(FAILURES_PER_SECOND, FAILURES_AT_ONCE)
        self._used: set[str] = set()

    async def principal(self, credential: str, address: str) -> Principal:
        """Return the principal of a credential.

        Raises `Unauthenticated`, or `TooManyRequests` after too many wrong credentials from one address. A valid
        credential passes from any address: many callers share one, and one of them may be an attacker.
        """
        digest = hashlib.sha256(credential.encode()).digest()  # so that the cache holds no secrets
        remembered = self._known.get(digest)
        if remembered and remembered.fresh:
            return remembered.principal
        try:
            principal = await self._verified(credential)
        except Unauthenticated:
            self._known.pop(digest, None)
            if seconds := self._failures.take(address):
                raise TooManyRequests(
                    "the credential is wrong, and this address has sent too many wrong credentials", retry_after=seconds
                ) from None
            raise
        except psycopg.Error as error:
            if not passes(error) or not remembered or not remembered.recent:
                raise
            self._remember(digest, remembered.principal, remembered.verified_at)
            return remembered.principal
        self._remember(digest, principal, time.monotonic())
        return principal

    async def _verified(self, credential: str) -> Principal:
        if credential.startswith(PREFIX):
            return await self._of_key(credential)
        if self._tokens is None:
            raise Unauthenticated("the credential is not a key, and this gateway accepts no tokens")
        return await self._tokens.principal(credential)

    async def _of_key(self, credential: str) -> Principal:
        secret = Secret.parse(credential)
        stored = None
        if secret:
            stored = await self._look_up(secret)
        if secret is None or stored is None or not stored.key.fits(secret):
            raise Unauthenticated("the key does not exist")
        if not stored.valid:
            raise Unauthenticated(f"the key has {'expired' if stored.expired else 'been revoked'}")
        self._used.add(secret.key_id)
        return stored.key.principal

    async def _look_up(self, secret: Secret) -> keys.StoredKey | None:
        try:
            return await self._keys.find(secret.key_id)
        except psycopg.errors.UndefinedTable:
            raise UnavailableError(
                "the database lacks geomill's schema, so keys cannot be verified", remedy=MIGRATE.http
            ) from None

    def _remember(self, digest: bytes, principal: Principal, verified_at: float) -> None:
        self._known.pop(digest, None)
        if len(self._known) >= MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[digest] = _Known(principal, verified_at, time.monotonic())

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[None]:
        """Record in the background which keys are used, never within a request."""
        task = asyncio.create_task(self._note_again_and_again(), name="note keys")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            await self._note()

    async def _note_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self._note()

    async def _note(self) -> None:
        if not self._used:
            return
        used, self._used = self._used, set()
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                await keys.used(conn, used)
        except psycopg.Error as error:
            log.warning("could not note which keys were used: %s", error, extra={"action": "keys"})


class OutsideAuthenticator:
    """The authenticator of a server without keys. It accepts one monitoring secret and tokens of the issuer."""

    def __init__(self, metrics_key: SecretStr | None, tokens: Tokens | None) -> None:
        self._metrics_key, self._tokens = metrics_key, tokens

    async def principal(self, credential: str, address: str) -> Principal:
        """Raises `Unauthenticated`."""
        del address  # no database query to protect, so no rate limit
        secret = self._metrics_key.get_secret_value() if self._metrics_key else None
        if secret and hmac.compare_digest(credential.encode(), secret.encode()):
            return MONITORING
        if self._tokens is None or credential.startswith(PREFIX):
            raise Unauthenticated(
                "this server does not know the credential", remedy="send the value of GEOMILL_METRICS_KEY"
            )
        return await self._tokens.principal(credential)
