"""The worker process: leases tasks for its free slots, runs them, reports in batches.

Four duties share the slots. `_work` makes an exchange whenever there is something to report or to lease, so an idle
worker responds at once and a busy one reports in batches. The keeper renews leases, the watch ends attempts that must
not go on, and the last duty waits for the signal to stop. A worker needs three connections, whatever its concurrency:
for notifications, for exchanges and for the keeper.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import uniform

import psycopg

from geomill.domain.engine.instance import InstanceRole
from geomill.domain.engine.message import HEAVY_QUEUE
from geomill.process import run_duties
from geomill.queues import postgres as queue
from geomill.queues.servicebus import Bus, Offer, Permits
from geomill.queues.turns import TenantTurns
from geomill.sdk.code_version import code_versions
from geomill.sdk.context import ExternalCatalogue
from geomill.sdk.execution import Ended
from geomill.sdk.registry import Registry
from geomill.storage import NO_STORAGE, Storage
from geomill.store import instances
from geomill.store.activity import Activity
from geomill.store.connection import attentive
from geomill.store.passing import passes
from geomill.store.pool import Connection, Pool
from geomill.store.replanning import drop_plans
from geomill.store.signals import SCHEMA_CHANNEL, Signals, notify, queue_channel, worker_channel
from geomill.store.tallies import Tallies
from geomill.worker.aside import Aside
from geomill.worker.breakers import Breakers
from geomill.worker.children.pool import ChildPool
from geomill.worker.contact import Contact
from geomill.worker.drain import drain, end_all
from geomill.worker.exchange import Exchange
from geomill.worker.keeper import Keeper
from geomill.worker.notes import Notebook
from geomill.worker.options import WorkerOptions
from geomill.worker.referrals import Referrals
from geomill.worker.repertoire import Repertoire
from geomill.worker.runner import Runner
from geomill.worker.shares import Shares
from geomill.worker.slots import Slot
from geomill.worker.spare import Spare
from geomill.worker.trial import Trial
from geomill.worker.watch import Watch

log = logging.getLogger(__name__)

IRREGULAR = (0.75, 1.25)
"""The shares of a poll interval that a worker waits. Workers that look in step would take the same turns for ever: one
would put back what it cannot run, and always be the first to lease it again (worker/repertoire.py)."""

OWN_CHANNEL = "own"
"""The channel for reports of this process, as opposed to notifications of queues."""


@dataclass
class Worker:
    url: str
    pool: Pool
    handlers: Registry
    options: WorkerOptions
    instance_id: str = field(default_factory=lambda: instances.new_instance_id(InstanceRole.WORKER))
    handler_pool: Pool | None = None
    """The `ctx.pool` of async handlers, whose sessions have PostgreSQL's ordinary settings."""
    storage: Storage = NO_STORAGE
    """The `ctx.storage` of handlers, here and in child processes."""
    external: ExternalCatalogue | None = None
    """The `ctx.external` of async handlers."""
    loader_url: str | None = None
    """The `ctx.database` of handlers in child processes. If absent, the worker's own."""
    bus: Bus | None = None
    """Service Bus, if that says when tasks wait, instead of notifications of the database."""

    def __post_init__(self) -> None:
        options = self.options
        self._queues = {queue_channel(name): name for name in options.queues}
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._slots: dict[int, Slot] = {}
        self._trial = Trial(self._poke)
        channels = () if self.bus else (*self._queues, worker_channel(self.instance_id))
        self._signals = Signals(self.url, channels, self._on_connect)
        self._referrals = Referrals(options.queues, self._signals.poke)
        self._unsure = False
        self._notebook = Notebook(self._wake)
        self._tallies, self._activity = Tallies(), Activity()
        self._shares = Shares(options.queues, options.weights)
        self._turns = TenantTurns(self._slots_in_use)
        self._exchange = Exchange(self.instance_id, self._notebook, self._shares, options.lease_seconds, self._turns)
        self._permits = Permits(self.bus, options.queues, self._room, self._permit_arrived) if self.bus else None
        if self._permits:
            self._exchange.reported = self._permits.reported
        self._spare = Spare(options)
        self._exchanging = asyncio.Lock()
        self._children = ChildPool.of(
            self.handlers,
            ready=min(options.concurrency, options.processes),
            tasks_per_child=options.tasks_per_process,
            memory_mb=options.memory_mb,
            storage=self.storage.recipe,
            database=attentive(self.loader_url or self.url),
            wishes=options.wishes,
        )
        self._repertoire = Repertoire(self.instance_id, self.handlers, options.handler_wait_seconds)
        self._runner = Runner(
            self.handlers,
            self._repertoire,
            self._children,
            self.storage,
            self.handler_pool or self.pool,
            self.external,
        )
        self._aside = Aside(self.storage)
        self._breakers = Breakers()
        self._contact = Contact(options.silent_seconds, self._lose_contact)
        self._keeper = Keeper(
            self.url,
            self.pool,
            self.instance_id,
            options,
            self._slots,
            self._tallies,
            self._activity,
            self._contact,
            self._signals.connected,
            code_versions(self.handlers),
        )
        self._watch = Watch(self._slots, self._children, self._contact, self._give_up)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and the running tasks have ended."""
        self._loop, self._stop = asyncio.get_running_loop(), stop
        await self._signals.start()
        self._children.open()
        never = asyncio.Event()
        duties = [self._signals.run, self._work, self._keeper.run, self._look_after, self._drain_when_told]
        if self._permits:
            duties += self._permits.duties
        try:
            await run_duties(never, *duties, leave=self._leave)
        finally:
            await self._children.close()
            if self._permits:
                await self._permits.close()

    async def _on_connect(self, conn: Connection) -> None:
        await self._keeper.register(conn)

    # The loop

    async def _work(self) -> None:
        """Make exchanges, on one session for as long as it lasts."""
        while True:
            try:
                async with self.pool.connection() as conn:
                    while True:
                        await self._exchange_when_called(conn)
            except psycopg.Error as error:
                if not passes(error):
                    raise
                log.warning(
                    "the database connection was lost; trying again in %s s: %s", self.options.poll_seconds, error
                )
                self._unsure = True
                self._shares.called()
                await asyncio.sleep(self.options.poll_seconds)
                self._poke()

    async def _exchange_when_called(self, conn: Connection) -> None:
        seconds = self.options.poll_seconds * uniform(*IRREGULAR)  # noqa: S311  not a secret
        channels = await self._signals.wait(seconds)
        if self._permits and not channels:
            self._permits.look(*self.options.queues)
        if SCHEMA_CHANNEL in channels:
            await drop_plans(conn)
        direct = self._referrals.heard(channels)
        self._shares.called(self._queues[channel] for channel in channels if channel in self._queues)
        self._shares.called(name for name in direct.values() if name)
        more = True
        while more:
            more = await self._exchange_once(conn)
            await asyncio.sleep(0)  # let the handlers run, too
        if left := [call for call, name in direct.items() if name is None or self._shares.may_have(name)]:
            await self._referrals.pass_on(conn, left)

    async def _exchange_once(self, conn: Connection) -> bool:
        """Make one exchange and start the leased tasks. Returns whether there may be more to do at once."""
        async with self._exchanging:
            if self._unsure:
                await self._disown(conn)
            free, offer = self._free_slots(), self._permits.offer() if self._permits else None
            await self._breakers.tell(conn)
            await self._trial.tell(conn)
            leased = await self._exchange.once(conn, free, self._limits())
            self._activity.looked()
            has_refused = await self._begin(conn, leased)
            await self._begin(conn, await self._newcomer(conn))
            if self._permits and offer:
                self._put_away(self._permits, offer)
        return self._exchange.pressing or has_refused or 0 < free == len(leased)

    async def _begin(self, conn: Connection, leased: Sequence[Slot]) -> bool:
        """Start tasks. Returns whether some were put back, so that others may have their slots at once."""
        admitted = await self._repertoire.admit(conn, leased)
        for slot in await self._breakers.admit(conn, admitted):
            is_new = slot.delivery.sequence not in self._slots
            if not (slot.suspect and is_new) or await self._trial.open(conn, slot):
                self._start(slot)
        return len(admitted) < len(leased)

    async def _newcomer(self, conn: Connection) -> list[Slot]:
        """Lease a spare task for a tenant that has no slot here."""
        if not self._may_lease:
            return []
        search = self._spare.search(self._slots.values())
        return await self._exchange.lease_for_newcomer(conn, search.queues, search.holders) if search else []

    def _limits(self) -> dict[str, int]:
        """Return the limits of queues. Heavy tasks run in processes, and more processes than CPUs only need memory."""
        limits = {HEAVY_QUEUE: self._heavy_room}
        permitted = self._permits.limits() if self._permits else {}
        return limits | {name: min(count, limits.get(name, count)) for name, count in permitted.items()}

    @property
    def _heavy_room(self) -> int:
        return max(self.options.processes, 1) - self._slots_in_use(HEAVY_QUEUE).total()

    # Permits of Service Bus

    def _room(self, queue_name: str) -> int:
        """Return how many tasks of a queue could begin now."""
        if not self._may_begin:
            return 0
        free = self.options.concurrency - len(self._slots)
        return min(free, self._heavy_room) if queue_name == HEAVY_QUEUE else free

    def _permit_arrived(self, queue_name: str) -> None:
        self._signals.poke(queue_channel(queue_name))

    def _put_away(self, permits: Permits, offer: Offer) -> None:
        """Settle the permits that the exchange showed to be of no use."""
        for queue_name in self.options.queues:
            if not self._shares.may_have(queue_name):
                permits.emptied(queue_name, offer)
        permits.fit()

    def _slots_in_use(self, queue_name: str) -> Counter[str]:
        """Return how many slots each tenant has with tasks of a queue."""
        return Counter(slot.delivery.tenant for slot in self._slots.values() if slot.delivery.queue_name == queue_name)

    async def _disown(self, conn: Connection) -> None:
        """Compare leases with the database, because the outcome of the last commit is unknown. Leases that the database
        has lost are taken back. Messages that it has leased to this worker, but that the worker does not have, are
        returned to their queue."""
        await self._keeper.recover(conn, self._exchange.ended)
        leased = {sequence for sequence, slot in self._slots.items() if not slot.lost}
        leased |= {*(settlement.sequence for settlement in self._exchange.ended)}
        leased |= {delivery.sequence for delivery, _ in self._exchange.malformed}
        freed = await queue.disown(conn, self.instance_id, leased)
        self._unsure = False
        await notify(conn, map(queue_channel, freed))
        if self._permits:
            self._permits.look(*freed)

    @property
    def _may_begin(self) -> bool:
        return not (self._stop.is_set() or self._trial.is_under_way or self._contact.is_lost)

    @property
    def _may_lease(self) -> bool:
        return self._may_begin and self._shares.hopeful

    def _lose_contact(self) -> None:
        """End all tasks. Their messages are returned to the queue as soon as the database answers."""
        self._keeper.stop_all()
        self._unsure = True

    def _free_slots(self) -> int:
        """Return the number of free slots; 0 if the queues were empty and have sent no notification since."""
        if not self._may_lease:
            return 0
        return self.options.concurrency - len(self._slots)

    async def _look_after(self) -> None:
        await self._watch.run(self._poke_if_noted)

    def _poke_if_noted(self) -> None:
        if self._notebook.pending:
            self._poke()

    def _poke(self) -> None:
        self._signals.poke(OWN_CHANNEL)

    def _wake(self) -> None:
        """Wake the worker. May be called from any thread, such as one that a handler has started."""
        self._loop.call_soon_threadsafe(self._poke)

    # The end

    async def _drain_when_told(self) -> None:
        await self._stop.wait()
        async with self._exchanging:
            pass  # wait until an exchange under way has put its leased tasks into slots
        await drain(self._slots, self.options.drain_seconds)
        for slot in await end_all(self._slots):
            self._give_up(slot)
        await self._exchanging.acquire()  # never released, so that no exchange is cut off in the middle

    async def _leave(self) -> None:
        """Report ended tasks and hand back unfinished ones. Another worker continues from their checkpoints."""
        for slot in await end_all(self._slots):
            self._give_up(slot)
        try:
            async with asyncio.timeout(self.options.drain_seconds):
                while True:
                    if await self._say_goodbye():
                        break
                    await asyncio.sleep(self.options.poll_seconds)
        except TimeoutError:
            log.error("the database did not come back: %d results are lost", len(self._exchange.ended))  # noqa: TRY400
        await self._signals.stop()

    async def _say_goodbye(self) -> bool:
        try:
            async with self.pool.connection() as conn:
                await self._exchange.once(conn, free=0)
                await instances.remove(conn, self.instance_id)
        except psycopg.Error as error:
            if not passes(error):
                raise
            log.warning("%d results wait for the database: %s", len(self._exchange.ended), error)
            return False
        return True

    # Tasks

    def _start(self, slot: Slot) -> None:
        delivery = slot.delivery
        forgotten = self._slots.get(delivery.sequence)
        if forgotten and forgotten is not slot:  # its lease was lost in a crash of the server
            if forgotten.resume(delivery):
                return
            forgotten.lose(time.monotonic())
        self._slots[delivery.sequence] = slot
        if self._permits:
            self._permits.use(delivery)
        self._tallies.observe("step_wait_seconds", delivery.waited)
        self._activity.count("leased")
        if slot.message.retry_count:
            self._activity.count("retried")
        slot.task = self._loop.create_task(self._run_slot(slot), name=slot.message.task_id)

    async def _run_slot(self, slot: Slot) -> None:
        try:
            ended = await self._runner.run(slot)
            if ended and self._aside.wants(ended):
                ended = await self._aside.put(slot.message, ended)
        except BaseException:  # cancelled from outside, or a bug: the lease will expire
            self._free(slot)
            raise
        self._close(slot, ended)

    def _give_up(self, slot: Slot) -> None:
        """Free the slot of a handler that cannot be ended."""
        if slot.task:
            log.error("the handler of %s ignores its cancellation and is left behind", slot.message.task_id)
        self._close(slot, slot.verdict)

    def _close(self, slot: Slot, ended: Ended | None) -> None:
        if not slot.closed:
            slot.closed = True
            self._free(slot)
            self._tallies.observe("step_run_seconds", time.monotonic() - (slot.begun or slot.leased))
            if ended:
                self._activity.count("completed" if ended.success else "failed")
            self._breakers.note(slot.message, ended)
            if settlement := slot.outcome(ended):
                self._exchange.ended.append(settlement)
            elif self._permits:
                self._permits.lost(slot.delivery.sequence)
            self._poke()

    def _free(self, slot: Slot) -> None:
        """Free the slot, unless the same message was leased again meanwhile and has a new slot."""
        if self._slots.get(slot.delivery.sequence) is slot:
            del self._slots[slot.delivery.sequence]
            self._trial.close(slot)
