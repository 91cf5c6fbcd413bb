"""Signatures for one container each, which a managed identity hands on: user delegation SAS of Azure Blob.

GDAL understands a signature wherever Azure runs code, and not the ways in which tokens are asked for. A signature here
permits reading and listing in one container. Azure gives a key for a day; a new one is asked for after half of it, so a
signature is good for half a day at least, which is longer than a file stays open.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import httpx

from geomill.errors import IdentityUnavailable, StorageDenied, StorageUnavailable
from geomill.identity import tokens

VERSION = "2020-12-06"
"""The version of Azure's protocol, on which the order of the signed fields depends."""
LIFE = timedelta(hours=24)
RENEWED_BEFORE = LIFE / 2
CLOCKS_DIFFER = timedelta(minutes=15)
READ_AND_LIST = "rl"
_REQUEST = '<?xml version="1.0" encoding="utf-8"?><KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>'
_LONGEST_ANSWER = 10_000
_ROLE = "give the identity the role Storage Blob Delegator, or Storage Blob Data Contributor, on the account"


@dataclass(frozen=True, slots=True)
class DelegationKey:
    """A key of Azure that signs in the name of an identity."""

    identity: str
    tenant: str
    start: str
    expiry: str
    service: str
    version: str
    secret: bytes = field(repr=False)

    @property
    def expires_at(self) -> datetime:
        return datetime.fromisoformat(self.expiry)

    def signature(self, account: str, container: str) -> str:
        """Return the query string that lets its bearer read in the container until the key ends."""
        fields = {
            "sp": READ_AND_LIST,
            "se": self.expiry,
            "skoid": self.identity,
            "sktid": self.tenant,
            "skt": self.start,
            "ske": self.expiry,
            "sks": self.service,
            "skv": self.version,
            "spr": "https",
            "sv": VERSION,
            "sr": "c",
        }
        place = f"/blob/{account}/{container}"
        key_fields = [fields[name] for name in ("skoid", "sktid", "skt", "ske", "sks", "skv")]
        signed = [READ_AND_LIST, "", self.expiry, place, *key_fields, *[""] * 4, "https", VERSION, "c", *[""] * 7]
        digest = hmac.new(self.secret, "\n".join(signed).encode(), hashlib.sha256).digest()
        return urlencode({**fields, "sig": base64.b64encode(digest).decode()}, quote_via=quote)


def storage_token(client_id: str | None) -> tokens.AccessToken:
    """Return a token for Azure Blob. Raises `StorageUnavailable`: for a task it is the store that is away."""
    try:
        return tokens.token(tokens.STORAGE, client_id)
    except IdentityUnavailable as error:
        raise StorageUnavailable(f"the store cannot be used: {error.message}", remedy=error.remedy) from None


class Delegations:
    """The keys of the accounts that are read with a managed identity. Each is fetched at its first use."""

    def __init__(self, client_id: str | None, timeout_seconds: float) -> None:
        self._client_id, self._timeout = client_id, timeout_seconds
        self._keys: dict[str, DelegationKey] = {}
        self._lock = threading.Lock()

    def signature(self, account: str, endpoint: str, container: str) -> str:
        """Return a signature for the container. Blocks while a key is fetched."""
        with self._lock:
            key, now = self._keys.get(account), datetime.now(UTC)
            if key is None or key.expires_at - now < RENEWED_BEFORE:
                key = self._keys[account] = self._renewed(account, endpoint, key, now)
        return key.signature(account, container)

    def _renewed(self, account: str, endpoint: str, last: DelegationKey | None, now: datetime) -> DelegationKey:
        """Fetch a key. If Azure does not answer, the last one will do until it ends."""
        try:
            return fetch_key(account, endpoint, storage_token(self._client_id).text, now, self._timeout)
        except StorageUnavailable:
            if last is None or last.expires_at - now < CLOCKS_DIFFER:
                raise
            return last


def fetch_key(account: str, endpoint: str, token: str, now: datetime, timeout_seconds: float) -> DelegationKey:
    begin, end = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (now - CLOCKS_DIFFER, now + LIFE))
    try:
        answer = httpx.post(
            f"{endpoint}/?restype=service&comp=userdelegationkey",
            content=_REQUEST.format(begin, end),
            headers={"Authorization": f"Bearer {token}", "x-ms-version": VERSION, "Content-Type": "application/xml"},
            timeout=timeout_seconds,
        )
    except httpx.HTTPError as error:
        raise StorageUnavailable(f"the account '{account}' gives no key to read with: {type(error).__name__}") from None
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise StorageDenied(f"the account '{account}' refuses a key to read with", remedy=_ROLE)
    if answer.status_code != httpx.codes.OK:
        raise StorageUnavailable(f"the account '{account}' gives no key to read with: status {answer.status_code}")
    return _key(account, answer.text[:_LONGEST_ANSWER])


def _key(account: str, text: str) -> DelegationKey:
    def value(name: str) -> str:
        match = re.search(rf"<{name}>([^<]+)</{name}>", text)
        if match is None:
            raise StorageUnavailable(f"the account '{account}' gives a key without {name}")
        return match[1]

    return DelegationKey(
        identity=value("SignedOid"),
        tenant=value("SignedTid"),
        start=value("SignedStart"),
        expiry=value("SignedExpiry"),
        service=value("SignedService"),
        version=value("SignedVersion"),
        secret=base64.b64decode(value("Value")),
    )
