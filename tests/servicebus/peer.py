"""A small peer for the Service Bus client: queues over AMQP 1.0, as far as geomill uses them.

The tests start it with the system's Python, because Debian has Qpid Proton as a package for that one only:

    /usr/bin/python3 tests/servicebus/peer.py --listen 127.0.0.1:5673 --lock-seconds 30 --max-deliveries 10

It tests our use of Microsoft's client. It is no proof of Azure's own behaviour; the same tests run against a real
namespace (tests/servicebus/README.md). Queues appear when they are first named. Messages live in memory, and outlive
connections but not the process.

It reads commands from its standard input, one a line, and answers each with one line of JSON:

    depth QUEUE        the number of messages: waiting, locked, scheduled, dead
    cut                close every connection without a word
    refuse SECONDS     cut, and accept no connection for a while, as in a restart
    throttle SECONDS   refuse every message that is sent, with "server busy"
    lock SECONDS       the length of new locks
    drop N             forget the next N messages after they were confirmed
    expire QUEUE       end all locks of the queue now
    token              the latest token by which somebody identified itself
    clear              forget all messages, and be neither busy nor away
"""

from __future__ import annotations

import argparse
import collections
import heapq
import itertools
import json
import os
import queue
import sys
import threading
import time
import uuid

from proton import (
    UNDESCRIBED,
    AnnotationDict,
    Array,
    Condition,
    Data,
    Delivery,
    Described,
    Endpoint,
    Link,
    Message,
    SSLDomain,
    int32,
    symbol,
    timestamp,
)
from proton.handlers import MessagingHandler
from proton.reactor import Container

LOCK_LOST = "com.microsoft:message-lock-lost"
BUSY = "com.microsoft:server-busy"
DUPLICATES_SECONDS = 600.0
TICK_SECONDS = 0.02
DATA_SECTION = 0x75
LARGEST_MESSAGE = 262_144


class StoredMessage:
    """A message of a queue, with what the broker knows about it."""

    def __init__(self, message: Message, number: int, now: float) -> None:
        self.message, self.number, self.enqueued = message, number, now
        self.deliveries = 0
        self.reason = self.description = None

    def expired(self, now: float) -> bool:
        return bool(self.message.ttl) and self.enqueued + self.message.ttl < now


class Queue:
    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: collections.deque[StoredMessage] = collections.deque()
        self.scheduled: list[tuple[float, int, StoredMessage]] = []
        self.locked: dict[uuid.UUID, tuple[StoredMessage, float]] = {}
        self.links: list[Link] = []
        self.ids: dict[object, float] = {}

    def is_repeated(self, message_id: object, now: float) -> bool:
        """Say whether a message with this id came within the window of duplicate detection."""
        self.ids = {known: at for known, at in self.ids.items() if at > now - DUPLICATES_SECONDS}
        if message_id is None:
            return False
        repeated = message_id in self.ids
        self.ids.setdefault(message_id, now)
        return repeated


class Peer(MessagingHandler):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(prefetch=200, auto_accept=False, auto_settle=False)
        self.options = options
        self.lock_seconds = options.lock_seconds
        self.queues: dict[str, Queue] = {}
        self.numbers = itertools.count(1)
        self.replies: dict[tuple[str, str], Link] = {}
        self.connections: set[object] = set()
        self.busy_until = 0.0
        self.closed_until = 0.0
        self.drops = 0
        self.token = ""
        self.commands: queue.Queue[str] = queue.Queue()

    # The life of the process

    def on_start(self, event: object) -> None:
        self.container = event.container
        self.listen()
        self.container.schedule(TICK_SECONDS, self)
        threading.Thread(target=self.read_commands, daemon=True).start()
        print(json.dumps({"listening": self.options.listen}), flush=True)

    def listen(self) -> None:
        scheme, domain = "amqp", None
        if self.options.certificate:
            scheme, domain = "amqps", SSLDomain(SSLDomain.MODE_SERVER)
            domain.set_credentials(self.options.certificate, self.options.key, None)
        self.acceptor = self.container.listen(f"{scheme}://{self.options.listen}", ssl_domain=domain)

    def read_commands(self) -> None:
        for line in sys.stdin:
            self.commands.put(line.strip())
        self.commands.put("end")

    def on_timer_task(self, event: object) -> None:
        now = time.time()
        while not self.commands.empty():
            print(json.dumps(self.obey(*self.commands.get().split())), flush=True)
        if self.acceptor is None and now >= self.closed_until:
            self.listen()
        for each in list(self.queues.values()):
            self.look_after(each, now)
        self.container.schedule(TICK_SECONDS, self)

    def obey(self, command: str, *words: str) -> dict[str, object]:
        commands = {
            "depth": lambda: self.depth(self.queue(words[0])),
            "throttle": lambda: setattr(self, "busy_until", time.time() + float(words[0])),
            "lock": lambda: setattr(self, "lock_seconds", float(words[0])),
            "drop": lambda: setattr(self, "drops", int(words[0])),
            "expire": lambda: self.expire_locks(self.queue(words[0])),
            "refuse": lambda: self.refuse(float(words[0])),
            "token": lambda: {"token": self.token},
            "cut": self.cut,
            "clear": self.clear,
            "end": lambda: os._exit(0),
        }
        return commands[command]() or {"done": command}

    def refuse(self, seconds: float) -> None:
        self.closed_until = time.time() + seconds
        if self.acceptor:
            self.acceptor.close()
        self.acceptor = None
        self.cut()

    def depth(self, each: Queue) -> dict[str, object]:
        dead = self.queues.get(f"{each.name.lower()}/$deadletterqueue")
        letters = [] if dead is None else list(dead.ready)
        return {
            "waiting": len(each.ready),
            "locked": len(each.locked),
            "scheduled": len(each.scheduled),
            "dead": [[letter.reason, letter.description] for letter in letters],
            "receivers": len(each.links),
        }

    def clear(self) -> None:
        links = {name: each.links for name, each in self.queues.items()}
        self.queues = {name: Queue(name) for name in links}
        for name, open_links in links.items():
            self.queues[name].links = open_links
        self.busy_until = self.closed_until = 0.0
        self.drops = 0
        self.lock_seconds = self.options.lock_seconds

    def cut(self) -> None:
        for connection in list(self.connections):
            transport = connection.transport
            if transport is not None:
                transport.close_tail()
                transport.close_head()
        self.connections.clear()

    # Queues

    def queue(self, address: str) -> Queue:
        name = address.split("://", 1)[-1].split("/", 1)[1] if "://" in address else address
        return self.queues.setdefault(name.lower(), Queue(name))

    def look_after(self, each: Queue, now: float) -> None:
        while each.scheduled and each.scheduled[0][0] <= now:
            each.ready.append(heapq.heappop(each.scheduled)[2])
        for token, (stored, until) in list(each.locked.items()):
            if until < now:
                del each.locked[token]
                self.give_back(each, stored)
        self.pump(each)

    def expire_locks(self, each: Queue) -> None:
        for token, (stored, _) in list(each.locked.items()):
            each.locked[token] = (stored, 0.0)
        self.look_after(each, time.time())

    def give_back(self, each: Queue, stored: StoredMessage) -> None:
        if stored.deliveries >= self.options.max_deliveries:
            self.bury(each, stored, "MaxDeliveryCountExceeded", "")
        else:
            each.ready.appendleft(stored)

    def bury(self, each: Queue, stored: StoredMessage, reason: str | None, description: str | None) -> None:
        said = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        properties = {**(stored.message.properties or {}), **{name: text for name, text in said.items() if text}}
        stored.message.properties = properties
        stored.reason, stored.description = reason, description
        self.queue(each.name + "/$DeadLetterQueue").ready.append(stored)

    def enqueue(self, each: Queue, raw: bytes) -> int:
        now, message = time.time(), Message()
        message.decode(raw)
        stored = StoredMessage(message, next(self.numbers), now)
        if self.drops:
            self.drops -= 1
            return stored.number
        if each.is_repeated(message.id, now):
            return stored.number
        annotations = {str(name): value for name, value in (message.annotations or {}).items()}
        due = (annotations.get("x-opt-scheduled-enqueue-time") or 0) / 1000
        if due > now:
            heapq.heappush(each.scheduled, (due, stored.number, stored))
        else:
            each.ready.append(stored)
        return stored.number

    def pump(self, each: Queue) -> None:
        """Deliver what waits to the links that have credit, in turn."""
        progress = True
        while progress and each.ready:
            progress = False
            for link in list(each.links):
                if link.credit <= 0 or not each.ready:
                    continue
                stored = each.ready.popleft()
                progress = True
                if stored.expired(time.time()):
                    self.bury(each, stored, "TTLExpiredException", "")
                    continue
                self.deliver(each, link, stored)

    def deliver(self, each: Queue, link: Link, stored: StoredMessage) -> None:
        until, token = time.time() + self.lock_seconds, uuid.UUID(bytes_le=os.urandom(8).hex().encode())
        annotations = AnnotationDict(stored.message.annotations or {})
        annotations[symbol("x-opt-locked-until")] = timestamp(int(until * 1000))
        annotations[symbol("x-opt-sequence-number")] = stored.number
        annotations[symbol("x-opt-enqueued-time")] = timestamp(int(stored.enqueued * 1000))
        annotations[symbol("x-opt-lock-token")] = token
        stored.message.annotations = annotations
        delivery = link.delivery(token.bytes_le.decode())
        link.stream(encoded(stored))
        link.advance()
        if link.remote_snd_settle_mode == Link.SND_SETTLED:
            delivery.settle()
            return
        stored.deliveries += 1
        each.locked[token] = (stored, until)

    # Links

    def on_connection_opening(self, event: object) -> None:
        self.connections.add(event.connection)

    def on_link_opening(self, event: object) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_receiver:
            link.max_message_size = LARGEST_MESSAGE
            return
        address = link.remote_source.address
        if is_managed(address):
            self.replies[(event.connection.remote_container, address)] = link
        else:
            self.queue(address).links.append(link)

    def on_link_closing(self, event: object) -> None:
        self.forget(lambda link: link == event.link)

    def on_disconnected(self, event: object) -> None:
        self.connections.discard(event.connection)
        self.forget(lambda link: link.connection == event.connection)

    def forget(self, is_gone: object) -> None:
        for each in self.queues.values():
            each.links = [link for link in each.links if not is_gone(link)]

    def on_sendable(self, event: object) -> None:
        self.on_link_flow(event)

    def on_link_flow(self, event: object) -> None:
        link = event.link
        if link.is_sender and link.state & Endpoint.LOCAL_ACTIVE and not is_managed(link.remote_source.address or ""):
            self.pump(self.queue(link.remote_source.address))
            if link.drain_mode:
                link.drained()

    # Deliveries

    def on_delivery(self, event: object) -> None:
        delivery = event.delivery
        if delivery.link.is_receiver:
            self.receive(event, delivery)
        elif delivery.updated and not is_managed(delivery.link.remote_source.address):
            self.settle(delivery)

    def receive(self, event: object, delivery: Delivery) -> None:
        if delivery.partial or not delivery.readable:
            return
        link = delivery.link
        raw = link.recv(delivery.pending)
        link.advance()
        link.flow(max(0, 200 - link.credit))
        address = link.remote_target.address
        if address == "$cbs":
            request = Message()
            request.decode(raw)
            self.token = str(request.body)
            self.answer(event, address, request, {"status-code": int32(202), "status-description": "OK"}, None)
        elif is_managed(address):
            self.manage(event, address, raw)
        elif time.time() < self.busy_until:
            delivery.local.condition = Condition(BUSY, "the peer was told to be busy")
            delivery.update(Delivery.REJECTED)
            delivery.settle()
            return
        else:
            each = self.queue(address)
            for part in parts_of(raw):
                self.enqueue(each, part)
            self.pump(each)
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()

    def settle(self, delivery: Delivery) -> None:
        """Settle a delivery. Without its lock it is refused: an echo of the outcome would read as success."""
        each = self.queue(delivery.link.remote_source.address)
        state, token = delivery.remote_state, uuid.UUID(bytes_le=delivery.tag.encode())
        if not state:
            return
        if token not in each.locked:
            delivery.local.condition = Condition(LOCK_LOST, "the lock is lost")
            delivery.update(Delivery.REJECTED)
            delivery.settle()
            return
        stored, _ = each.locked.pop(token)
        if state == Delivery.REJECTED:
            condition = delivery.remote.condition
            info = {str(name): value for name, value in ((condition.info if condition else None) or {}).items()}
            self.bury(each, stored, info.get("DeadLetterReason"), info.get("DeadLetterErrorDescription"))
        elif state == Delivery.RELEASED:
            stored.deliveries -= 1
            self.give_back(each, stored)
        elif state != Delivery.ACCEPTED:
            self.give_back(each, stored)
        delivery.update(state)
        delivery.settle()
        self.pump(each)

    # Management

    def manage(self, event: object, address: str, raw: bytes) -> None:
        request = Message()
        request.decode(raw)
        each = self.queue(address[: -len("/$management")])
        operation = request.properties["operation"].split(":")[1]
        body = {str(name): value for name, value in (request.body or {}).items()}
        operations = {
            "renew-lock": self.renew,
            "schedule-message": self.schedule,
            "cancel-scheduled-message": self.cancel,
            "peek-message": self.peek,
        }
        status, result = operations[operation](each, body) if operation in operations else (501, {})
        properties = {"statusCode": int32(status), "statusDescription": operation}
        if status == 410:
            properties["errorCondition"] = symbol(LOCK_LOST)
        self.answer(event, address, request, properties, result)
        self.pump(each)

    def renew(self, each: Queue, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        until, expirations = time.time() + self.lock_seconds, []
        for token in values_of(body["lock-tokens"]):
            if token not in each.locked:
                return 410, {}
            each.locked[token] = (each.locked[token][0], until)
            expirations.append(timestamp(int(until * 1000)))
        return 200, {"expirations": Array(UNDESCRIBED, Data.TIMESTAMP, *expirations)}

    def schedule(self, each: Queue, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        numbers = [self.enqueue(each, bytes(entry["message"])) for entry in body["messages"]]
        return 200, {"sequence-numbers": Array(UNDESCRIBED, Data.LONG, *numbers)}

    def cancel(self, each: Queue, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        numbers = set(values_of(body["sequence-numbers"]))
        each.scheduled = [entry for entry in each.scheduled if entry[1] not in numbers]
        heapq.heapify(each.scheduled)
        return 200, {}

    def peek(self, each: Queue, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        waiting = [*each.ready, *(entry[2] for entry in sorted(each.scheduled))]
        chosen = [stored for stored in waiting if stored.number >= body["from-sequence-number"]]
        entries = []
        for stored in chosen[: body["message-count"]]:
            annotations = AnnotationDict(stored.message.annotations or {})
            annotations[symbol("x-opt-sequence-number")] = stored.number
            annotations[symbol("x-opt-enqueued-time")] = timestamp(int(stored.enqueued * 1000))
            stored.message.annotations = annotations
            entries.append({"message": stored.message.encode()})
        return (200 if entries else 204), {"messages": entries}

    def answer(self, event: object, address: str, request: Message, properties: dict, body: object) -> None:
        message = Message(body=body, properties=properties)
        message.correlation_id = request.id
        message.send(self.replies[(event.connection.remote_container, address)])


def is_managed(address: str) -> bool:
    return address == "$cbs" or address.endswith("/$management")


def values_of(array: object) -> list[object]:
    return list(getattr(array, "elements", array))


def parts_of(raw: bytes) -> list[bytes]:
    """Return the messages of a batch, which are the data sections of one transfer, or the one message."""
    parts, offset, data = [], 0, Data()
    while offset < len(raw):
        data.clear()
        offset += data.decode(raw[offset:])
        data.rewind()
        data.next()
        section = data.get_object()
        if isinstance(section, Described) and section.descriptor == DATA_SECTION:
            parts.append(bytes(section.value))
    is_batch = parts and all(part[:2] == b"\x00\x53" and 0x70 <= part[2] <= 0x77 for part in parts)
    return parts if is_batch else [raw]


def encoded(stored: StoredMessage) -> bytes:
    """Encode a message with a header of its own: Proton leaves out one of defaults, but the client reads the delivery
    count from it."""
    message, ttl = stored.message, stored.message.ttl
    message.ttl, message.delivery_count, message.durable, message.priority = 0, 0, False, 4
    raw = message.encode()
    message.ttl = ttl
    if raw[:3] == b"\x00\x53\x70":
        lengths = {0x45: 4, 0xC0: 5 + raw[4], 0xD0: 8 + int.from_bytes(raw[4:8], "big")}
        raw = raw[lengths[raw[3]] :]
    fields = b"\x42\x50\x04"
    fields += b"\x70" + int(ttl * 1000).to_bytes(4, "big") if ttl else b"\x40"
    fields += b"\x42" + (b"\x52" + bytes([stored.deliveries]) if stored.deliveries else b"\x43")
    return b"\x00\x53\x70\xc0" + bytes([len(fields) + 1, 5]) + fields + raw


def main() -> None:
    parser = argparse.ArgumentParser(description="A small peer for the Service Bus client")
    parser.add_argument("--listen", default="127.0.0.1:5673")
    parser.add_argument("--lock-seconds", type=float, default=30.0)
    parser.add_argument("--max-deliveries", type=int, default=10)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    Container(Peer(parser.parse_args())).run()


if __name__ == "__main__":
    main()
