"""The permits of a worker: messages of Service Bus, each of which lets it lease one task.

    receive ─► unused ─► in use, while the task runs ─► completed, after the report is in the database
                  ├────► completed, if the queue in the database was empty
                  └────► given back, if the worker has no free slot

A worker asks for as many permits as it has free slots. The lock of a permit is renewed while its task runs, so that
scaling by the length of the queue counts running tasks. Nothing depends on the lock: if it is lost, the lease in the
database decides, the task goes on, and whoever gets the permit next finds no task for it.

Permits can be lost, and Service Bus can be away. So a worker that is idle for a second, or that got no permit of a
queue for five, looks into the database without one.

Two tasks must not make requests with one receiver at the same time, which the library mixes up. So one loop renews.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from geomill.errors import BusUnavailable
from geomill.process import Duty
from geomill.queues.postgres import Delivery, Held
from geomill.queues.servicebus.bus import ANSWER_SECONDS, Bus, broken, closed
from geomill.queues.servicebus.problems import bus_error

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusReceiver

log = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""How long to wait for a permit before looking into the database without one."""
AWAY_SECONDS = 1.0
"""The time between two looks, and two attempts to connect, while Service Bus is away."""
RENEWAL_SECONDS = 1.0


class Disposition(StrEnum):
    COMPLETE = "complete"
    GIVE_BACK = "give back"


@dataclass(eq=False, slots=True)
class HeldPermit:
    receiver: ServiceBusReceiver
    message: ServiceBusReceivedMessage
    half_lock: float
    renew_at: float
    lost: bool = False

    @classmethod
    def of(cls, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> HeldPermit:
        until = message.locked_until_utc
        seconds = (until - datetime.now(UTC)).total_seconds() if until else 0.0
        half_lock = max(seconds / 2, RENEWAL_SECONDS)
        return cls(receiver, message, half_lock, time.monotonic() + half_lock)

    async def renew(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.receiver.renew_message_lock(self.message)
        except Exception as error:  # noqa: BLE001  the lease in the database decides
            self.lost = True
            log.warning("the lock of a permit is lost, and its task goes on: %s", type(error).__name__)
        self.renew_at = time.monotonic() + self.half_lock

    async def settle(self, disposition: Disposition) -> None:
        settle = self.receiver.complete_message
        if disposition is Disposition.GIVE_BACK:
            settle = self.receiver.abandon_message
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await settle(self.message)
        except Exception as error:  # noqa: BLE001  whoever gets the permit next finds no task for it
            log.debug("a permit could not be settled, and will be delivered again: %s", error)


@dataclass(frozen=True, slots=True)
class Offer:
    """The unused permits of each queue, and the queues where a look is due, before an exchange with the database."""

    unused: Mapping[str, int]
    looks: frozenset[str]


class Permits:
    """`room` returns how many tasks of a queue the worker could begin now. `arrived` is called with the name of a queue
    when a permit has come, or when a look without one is due."""

    def __init__(
        self, bus: Bus, queue_names: Collection[str], room: Callable[[str], int], arrived: Callable[[str], None]
    ) -> None:
        self._bus, self._room, self._arrived = bus, room, arrived
        self._unused: dict[str, deque[HeldPermit]] = {name: deque() for name in queue_names}
        self._in_use: dict[int, HeldPermit] = {}
        self._looks: set[str] = set()
        self._receivers: dict[str, ServiceBusReceiver] = {}
        """They stay open when the duties have ended, because what runs then is still to be settled."""
        self._freed = {name: asyncio.Event() for name in queue_names}
        self._spent: deque[tuple[HeldPermit, Disposition]] = deque()
        self._spending = asyncio.Event()

    # Calls of the worker

    def limits(self) -> dict[str, int]:
        """Return how many tasks may be leased from each queue. A queue where a look is due has no limit."""
        return {name: len(unused) for name, unused in self._unused.items() if name not in self._looks}

    def offer(self) -> Offer:
        """Return what the next exchange may use."""
        return Offer({name: len(unused) for name, unused in self._unused.items()}, frozenset(self._looks))

    def use(self, delivery: Delivery) -> None:
        """Note that a task begins. If there is a permit, it is kept as long as the task runs."""
        unused = self._unused.get(delivery.queue_name)
        if unused and delivery.sequence not in self._in_use:
            self._in_use[delivery.sequence] = unused.popleft()

    def emptied(self, queue_name: str, offer: Offer) -> None:
        """Note that the database had fewer tasks of this queue than were asked for. Of the permits that were offered,
        those that are left have no task. Others may have come since, for tasks that came since."""
        if queue_name in offer.looks:
            self._looks.discard(queue_name)
        unused = self._unused[queue_name]
        for _ in range(min(offer.unused[queue_name], len(unused))):
            self._spend(unused.popleft(), Disposition.COMPLETE)

    def reported(self, ended: Iterable[Held]) -> None:
        """Note that the reports on these tasks are in the database."""
        for task in ended:
            if permit := self._in_use.pop(task.sequence, None):
                self._spend(permit, Disposition.COMPLETE)

    def lost(self, sequence: int) -> None:
        """Note that a task ended without a report. If it waits again, another worker should look."""
        if permit := self._in_use.pop(sequence, None):
            self._spend(permit, Disposition.GIVE_BACK)

    def look(self, *queue_names: str) -> None:
        """Have the worker look into the database once, without permits."""
        for queue_name in self._unused.keys() & set(queue_names):
            self._looks.add(queue_name)
            self._arrived(queue_name)

    def fit(self) -> None:
        """Give back the permits for which there is no slot, and ask for more where there is one."""
        for name, unused in self._unused.items():
            for _ in range(len(unused) - max(self._room(name), 0)):
                self._spend(unused.pop(), Disposition.GIVE_BACK)
            self._freed[name].set()

    # Duties

    @property
    def duties(self) -> list[Duty]:
        """The duties of the worker that permits need. They stand side by side, because a `TaskGroup` would cancel its
        tasks only once (see `process.end`)."""
        return [*map(self._receiving, self._unused), self._renew, self._settle]

    def _receiving(self, name: str) -> Duty:
        async def receive() -> None:
            await self._receive(name)

        receive.__name__ = f"permits of {name}"
        return receive

    async def close(self) -> None:
        """Settle what is spent, and give back the rest."""
        for unused in self._unused.values():
            for permit in unused:
                self._spend(permit, Disposition.GIVE_BACK)
            unused.clear()
        for permit in self._in_use.values():
            self._spend(permit, Disposition.GIVE_BACK)
        self._in_use.clear()
        await self._settle_spent()
        for receiver in self._receivers.values():
            await closed(receiver)

    async def _receive(self, name: str) -> None:
        trouble = ""
        while True:
            try:
                receiver = self._receivers[name] = await self._bus.open_receiver(name, swift=True)
                if trouble:
                    log.info("the queue '%s' of Service Bus can be used again", name)
                    trouble = ""
                await self._receive_from(name, receiver)
            except BusUnavailable as error:
                if trouble != error.message:
                    log.warning("%s; until then the worker looks into the database", error)
                    trouble = error.message
            if name in self._receivers:
                await broken(self._receivers.pop(name))
            self.look(name)
            await asyncio.sleep(AWAY_SECONDS)

    async def _receive_from(self, name: str, receiver: ServiceBusReceiver) -> None:
        async for room in self._rooms(name):
            try:
                messages = await receiver.receive_messages(room, max_wait_time=WAIT_SECONDS)
            except Exception as error:
                raise bus_error(name, error) from error
            if not messages:
                self.look(name)
                continue
            self._unused[name].extend(HeldPermit.of(receiver, message) for message in messages)
            self._arrived(name)

    async def _rooms(self, name: str) -> AsyncIterator[int]:
        """Yield the number of permits to ask for, whenever there is room for some."""
        while True:
            self._freed[name].clear()
            room = self._room(name) - len(self._unused[name])
            if room > 0:
                yield room
            else:
                await self._freed[name].wait()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            now = time.monotonic()
            for permit in [permit for permit in self._held() if permit.renew_at <= now and not permit.lost]:
                await permit.renew()

    def _held(self) -> Iterator[HeldPermit]:
        for unused in self._unused.values():
            yield from unused
        yield from self._in_use.values()

    def _spend(self, permit: HeldPermit, disposition: Disposition) -> None:
        self._spent.append((permit, disposition))
        self._spending.set()

    async def _settle(self) -> None:
        while True:
            await self._spending.wait()
            self._spending.clear()
            await self._settle_spent()

    async def _settle_spent(self) -> None:
        """Permits leave the list when they are settled, because the loop may be cancelled meanwhile."""
        spent = list(self._spent)
        await asyncio.gather(*(permit.settle(disposition) for permit, disposition in spent))
        for _ in spent:
            self._spent.popleft()
