"""One client of Azure Service Bus for a process: its senders stay open, and each queue gets one receiver.

The library of Azure is imported when the first client is opened, because only platforms with Service Bus have it.
Its retries are switched off: callers repeat, and look into the database meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from geomill.errors import SettingsError
from geomill.identity.tokens import token
from geomill.queues.servicebus.problems import TOO_LARGE, bus_error

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken
    from azure.servicebus import ServiceBusMessage
    from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

DOMAIN = "servicebus.windows.net"
LONGEST_ID = 128
ANSWER_SECONDS = 15.0
"""The time limit of one send, and of opening a link."""


@dataclass(frozen=True)
class BusOptions:
    """Where the namespace is, and how this process identifies itself there."""

    connection_string: str | None = None
    namespace: str | None = None
    client_id: str | None = None
    """The client id of a managed identity. Without one, the identity of the machine."""
    certificates: str | None = None
    """A file with the certificates of authorities to trust, instead of the usual ones."""

    @property
    def host(self) -> str:
        namespace = self.namespace or ""
        return namespace if "." in namespace else f"{namespace}.{DOMAIN}"


@dataclass(frozen=True, slots=True)
class Posting:
    """A message to send. Nobody receives it before `due_at`."""

    message_id: str
    body: str
    ttl_seconds: float
    due_at: datetime | None = None
    correlation_id: str | None = None


def message_id_of(identity: str) -> str:
    """Return an id that Service Bus takes: it allows 128 characters."""
    return identity if len(identity) <= LONGEST_ID else hashlib.sha256(identity.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Unsent:
    """A message that Service Bus will never take, with the reason."""

    posting: Posting
    reason: str


class Bus:
    def __init__(self, client: ServiceBusClient) -> None:
        self._client = client
        self._senders: dict[str, ServiceBusSender] = {}
        self._sending: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def warm_up(self, queue_names: Iterable[str]) -> None:
        """Open the senders of these queues. Raises `BusUnavailable` if one cannot be opened."""
        await asyncio.gather(*(self.send(queue_name, []) for queue_name in queue_names))

    async def send(self, queue_name: str, postings: Sequence[Posting]) -> list[Unsent]:
        """Send messages, in as few batches as their size allows. Returns those that are too large for the queue.

        Raises `BusUnavailable` if the others may not have been sent. Then send them all again: a message whose id was
        sent before is dropped by a queue with duplicate detection, and does no harm in one without.
        """
        async with self._sending[queue_name]:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await _send_all(await self._sender(queue_name), postings)
            except Exception as error:
                await self._forget_sender(queue_name)
                raise bus_error(queue_name, error) from error

    async def _sender(self, queue_name: str) -> ServiceBusSender:
        if queue_name not in self._senders:
            sender = self._client.get_queue_sender(queue_name)
            self._senders[queue_name] = sender
            await sender.__aenter__()
        return self._senders[queue_name]

    async def _forget_sender(self, queue_name: str) -> None:
        if sender := self._senders.pop(queue_name, None):
            await broken(sender)

    @asynccontextmanager
    async def receiver(self, queue_name: str) -> AsyncIterator[ServiceBusReceiver]:
        """Yield a receiver that locks messages until they are settled. Raises `BusUnavailable`."""
        receiver = await self.open_receiver(queue_name)
        try:
            yield receiver
        finally:
            await closed(receiver)

    async def open_receiver(self, queue_name: str, *, swift: bool = False) -> ServiceBusReceiver:
        """Return a receiver, which the caller closes. Raises `BusUnavailable`.

        A `swift` one returns the first messages at once, where others wait 0.2 s for more. It settles without waiting
        for the answer, which holds up receiving for as long.
        """
        receiver = self._client.get_queue_receiver(queue_name)
        if swift:
            receiver._further_pull_receive_timeout = 0.0  # noqa: SLF001  test_private_parts.py has both
            receiver._await_settlement_outcome = False  # noqa: SLF001
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await receiver.__aenter__()
        except BaseException as error:
            await broken(receiver)
            if isinstance(error, Exception):
                raise bus_error(queue_name, error) from error
            raise

    async def close(self) -> None:
        for sender in self._senders.values():
            await closed(sender)
        await closed(self._client)


@asynccontextmanager
async def open_bus(options: BusOptions) -> AsyncIterator[Bus]:
    """Yield a client. It connects when it is first used."""
    bus = make_bus(options)
    try:
        yield bus
    finally:
        await bus.close()


def make_bus(options: BusOptions) -> Bus:
    """Return a client. Raises `SettingsError` if a library is missing, or the connection string is none."""
    try:
        from azure.servicebus.aio import ServiceBusClient
    except ImportError as error:
        raise SettingsError(
            f"GEOMILL_BROKER is servicebus, but a library is missing: {error.name}",
            remedy="run pip install 'geomill[server,azure]'",
        ) from error
    logging.getLogger("azure").setLevel(logging.WARNING)  # otherwise each attempt to connect is several lines
    common: dict[str, Any] = {"retry_total": 0, "connection_verify": options.certificates}
    if options.connection_string:
        check_connection_string(options.connection_string)
        return Bus(ServiceBusClient.from_connection_string(options.connection_string, **common))
    return Bus(ServiceBusClient(options.host, IdentityCredential(options.client_id), **common))


def check_connection_string(text: str) -> None:
    """Raise `SettingsError` unless the text leads to a namespace. Messages of the library do not contain the key."""
    from azure.servicebus import parse_connection_string

    remedy = "copy the connection string of a shared access policy of the namespace, not of one of its queues"
    try:
        properties = parse_connection_string(text)
    except ValueError as error:
        raise SettingsError(f"SERVICE_BUS_CONNECTION_STRING cannot be used: {error}", remedy=remedy) from None
    if properties.entity_path:
        raise SettingsError(
            f"SERVICE_BUS_CONNECTION_STRING leads to '{properties.entity_path}' alone, and every queue is needed",
            remedy=remedy,
        )


class IdentityCredential:
    """Gives the library tokens of a managed identity, of which a process has one store."""

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        from azure.core.credentials import AccessToken

        access = await asyncio.to_thread(token, scopes[0], self._client_id)
        return AccessToken(access.text, int(access.expires_at.timestamp()))

    async def close(self) -> None:
        """Nothing is open here."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def closed(handler: Any) -> None:
    """Close a sender, receiver or client. A connection that is gone cannot be closed in order."""
    with suppress(Exception):
        async with asyncio.timeout(ANSWER_SECONDS):
            await handler.close()


async def broken(handler: Any) -> None:
    """Close a sender or receiver whose connection broke.

    The library leaves its socket to the garbage collector, which geomill runs seldom (process.py). So it runs here:
    otherwise an outage of hours would use up the sockets of the process."""
    await closed(handler)
    gc.collect()


async def _send_all(sender: ServiceBusSender, postings: Sequence[Posting]) -> list[Unsent]:
    batch, unsent = await sender.create_message_batch(), []
    for posting in postings:
        message = _message(posting)
        try:
            batch.add_message(message)
        except ValueError:  # the batch is full, or the message is larger than any batch
            if len(batch):
                await sender.send_messages(batch)
                batch = await sender.create_message_batch()
            try:
                batch.add_message(message)
            except ValueError as error:
                unsent.append(Unsent(posting, f"{TOO_LARGE}: {error}"))
    if len(batch):
        await sender.send_messages(batch)
    return unsent


def _message(posting: Posting) -> ServiceBusMessage:
    from azure.servicebus import ServiceBusMessage

    return ServiceBusMessage(
        posting.body,
        message_id=posting.message_id,
        content_type="application/json",
        correlation_id=posting.correlation_id,
        time_to_live=timedelta(seconds=posting.ttl_seconds),
        scheduled_enqueue_time_utc=posting.due_at,
    )
