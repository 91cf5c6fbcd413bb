"""Callbacks, which tell a submitter that a job has ended: their rows, allowed addresses, signature and retries.

A callback URL comes from a user and must not give access to the internal network. So only addresses of the public
internet are called, unless the operator allows more.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Annotated, ClassVar
from urllib.parse import urlsplit
from zlib import crc32

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Check, Entity, ForeignKey, Index, Json, Key, Now, SqlDefault
from geomill.errors import InputError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

GIVE_UP_AFTER = timedelta(days=1)
FIRST_DELAY, LONGEST_DELAY = 5.0, 3600.0
_TUNNELS = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
"""IPv6 networks whose addresses contain an IPv4 address, which may be an internal one."""


class CallbackStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class Callback(Entity):
    """A call to make because a job has ended. During an attempt `due_at` is later than the end of the attempt."""

    __sql_table__: ClassVar = "dag_callbacks"
    __sql_primary_key__: ClassVar = ("delivery_id",)
    __sql_foreign_keys__: ClassVar = (ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",)),)
    __sql_indexes__: ClassVar = (
        Index("idx_dag_callbacks_job", ("job_id", "run_number"), unique=True),
        Index("idx_dag_callbacks_due", ("due_at",), where="status = 'pending'"),
        Index("idx_dag_callbacks_created", ("created_at DESC", "delivery_id DESC")),
        Index(
            "idx_dag_callbacks_platform",
            ("platform_id", "created_at DESC", "delivery_id DESC"),
            where="platform_id IS NOT NULL",
        ),
    )
    __sql_checks__: ClassVar = (Check("dag_callbacks_ended_at", "(status = 'pending') = (ended_at IS NULL)"),)
    __log_fields__: ClassVar = ("delivery_id", "job_id")

    delivery_id: Annotated[Key, SqlDefault("gen_random_uuid()")] = Field(
        description="Sent with the call; the same for every attempt"
    )
    job_id: Key
    run_number: int = 1
    url: Annotated[str, Field(max_length=512)]
    payload: Json = Field(description="The content of the call, as of the job's end")
    status: CallbackStatus = CallbackStatus.PENDING
    attempts: int = Field(default=0, description="Raised when an attempt begins, so that a late one cannot write")
    due_at: Now
    last_error: str | None = None
    last_status: int | None = Field(default=None, description="HTTP status of the latest attempt, if it had a response")
    platform_id: Annotated[str, Field(max_length=50)] | None = Field(
        default=None, description="The platform whose request the job works for"
    )
    sent_again_at: AwareDatetime | None = Field(default=None, description="When somebody asked to send it again")
    created_at: Now
    ended_at: AwareDatetime | None = None


def check_callback_url(url: str | None) -> None:
    """Raise `InputError` unless the URL is an http or https URL. Its address is checked when the call is made."""
    if url is None:
        return
    remedy = "give an absolute URL such as https://example.org/hooks/geomill"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"callback_url cannot be read: {error}", remedy=remedy) from error
    if parts.scheme not in ("http", "https"):
        raise InputError(f"callback_url must begin with http:// or https://, not '{parts.scheme}:'", remedy=remedy)
    if not parts.hostname:
        raise InputError("callback_url has no host", remedy=remedy)
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "callback_url must not contain a user or a password",
            remedy="remove them and verify the signature of the call instead",
        )
    if any(character.isspace() or not character.isprintable() for character in url):
        raise InputError("callback_url contains a space or a control character", remedy=remedy)


@dataclass(frozen=True)
class Allowance:
    """The hosts, networks and addresses that may be called besides the public internet."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Allowance:
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError as error:
                if "/" in entry or ":" in entry:
                    raise ValueError(f"'{entry}' is neither a host name nor a network such as 10.0.0.0/8") from error
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def permits(self, host: str, address: Address) -> bool:
        if host.lower().rstrip(".") in self.hosts:
            return True
        plain = _unwrapped(address)
        return _is_public(plain) or any(plain in network for network in self.networks)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 socket would connect to, or the address itself."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _is_public(address: Address) -> bool:
    closed = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    return address.is_global and not closed and not any(address in network for network in _TUNNELS)


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature that the receiver verifies: HMAC-SHA256 of the timestamp, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, sha256).hexdigest()


def retry_at(callback: Callback, now: datetime) -> datetime | None:
    """Return the time of the next attempt after a failed one; None if it would be later than `GIVE_UP_AFTER` allows.

    The delay doubles each time, up to an hour. It is spread by the delivery's id, so that calls which failed together
    are not retried together.
    """
    delay = min(FIRST_DELAY * 2 ** min(callback.attempts - 1, 20), LONGEST_DELAY)
    spread = crc32(f"{callback.delivery_id}:{callback.attempts}".encode()) / 2**32
    moment = now + timedelta(seconds=delay * (0.75 + 0.5 * spread))
    begun = callback.sent_again_at or callback.created_at
    return moment if moment <= begun + GIVE_UP_AFTER else None
