"""The worker process: leases tasks for its free slots, runs them, reports in batches.

One exchange with the database does all there is to do: what ended goes in, what handlers said goes in, the next
tasks come out. It happens whenever something has accumulated, so an idle worker answers at once and a busy one
batches by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg
from pydantic import ValidationError

from geomill.domain.instance import InstanceRole
from geomill.domain.jsonvalue import to_json
from geomill.domain.message import TaskMessage
from geomill.domain.task import Report
from geomill.process import run_duties
from geomill.queues import postgres as queue
from geomill.queues.postgres import LEASE_SECONDS, Delivery
from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.execution import Ended, execute
from geomill.sdk.registry import Registry
from geomill.store import checkpoints, inbox, instances
from geomill.store.checkpoints import CheckpointWrite
from geomill.store.inbox import Settlement
from geomill.store.pool import Connection, Pool
from geomill.store.signals import Signals, notify, owner_channel, queue_channel
from geomill.worker.reports import Notebook, Said

log = logging.getLogger(__name__)
handler_log = logging.getLogger("geomill.handler")


@dataclass(frozen=True)
class WorkerOptions:
    queues: tuple[str, ...]
    concurrency: int = 16
    poll_seconds: float = 1.0
    running_after_seconds: float = 1.0
    beat_seconds: float = 5.0


@dataclass(slots=True, eq=False)
class Slot:
    """A task under way."""

    delivery: Delivery
    message: TaskMessage
    begun: float
    task: asyncio.Task[None] | None = None
    told_running: bool = False
    cancelled: bool = False


@dataclass
class Worker:
    url: str
    pool: Pool
    handlers: Registry
    options: WorkerOptions
    instance_id: str = field(default_factory=lambda: instances.new_instance_id(InstanceRole.WORKER))

    def __post_init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._slots: dict[int, Slot] = {}
        self._ended: list[Settlement] = []
        channels = [queue_channel(name) for name in self.options.queues]
        self._signals = Signals(self.url, channels, self._on_connect)
        self._wake_channel = channels[0]
        self._notebook = Notebook(self._wake)

    async def run(self, stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        await self._signals.start()
        await run_duties(stop, self._work, self._keep, leave=self._leave)

    async def _on_connect(self, conn: Connection) -> None:
        await instances.register(conn, self.instance_id, InstanceRole.WORKER, self.options.queues)

    async def _leave(self) -> None:
        """Hand back what is unfinished: another worker goes on from its checkpoint."""
        unfinished = list(self._slots.values())
        for slot in unfinished:
            self._drop(slot)
        await asyncio.gather(*(slot.task for slot in unfinished if slot.task), return_exceptions=True)
        self._ended += [_settlement(slot, Report.ABANDONED) for slot in unfinished]
        async with self.pool.connection() as conn:
            await self._exchange(conn, free=0)
            await instances.remove(conn, self.instance_id)
        await self._signals.stop()

    # The loop

    async def _work(self) -> None:
        while True:
            await self._signals.wait(self.options.poll_seconds)
            try:
                async with self.pool.connection() as conn:
                    more = True
                    while more:
                        more = await self._exchange(conn, self.options.concurrency - len(self._slots))
            except psycopg.OperationalError as error:
                log.warning("the database went away, again in %s s: %s", self.options.poll_seconds, error)
                await asyncio.sleep(self.options.poll_seconds)
                self._wake()

    async def _exchange(self, conn: Connection, free: int) -> bool:
        """Whether there may be more to do at once."""
        ended, said = self._ended[:], self._notebook.take()
        deliveries: list[Delivery] = []
        owners: dict[str, str] = {}
        try:
            async with conn.transaction():
                await self._write_notes(conn, said)
                if ended:
                    owners = await inbox.settle(conn, self.instance_id, ended)
                if free:
                    deliveries = await queue.lease(conn, self.options.queues, free, self.instance_id)
        except psycopg.OperationalError:
            self._notebook.put_back(said)
            raise
        del self._ended[: len(ended)]
        for delivery in deliveries:
            self._start(delivery)
        await notify(conn, map(owner_channel, owners.values()))
        return bool(self._ended) or (free > 0 and len(deliveries) == free)

    async def _write_notes(self, conn: Connection, said: list[Said]) -> None:
        held = [(note.delivery.sequence, note.delivery.lease_token, note) for note in said]
        await checkpoints.save(
            conn,
            [
                CheckpointWrite(sequence, token, note.message, *note.checkpoint)
                for sequence, token, note in held
                if note.checkpoint
            ],
        )
        await queue.report_progress(
            conn, [(sequence, token, *note.progress) for sequence, token, note in held if note.progress]
        )

    async def _keep(self) -> None:
        """Heartbeat, renewal of leases, and the report that a task is running."""
        beaten = renewed = time.monotonic()
        while True:
            await asyncio.sleep(self.options.running_after_seconds / 2)
            now = time.monotonic()
            try:
                async with self.pool.connection() as conn:
                    await self._tell_running(conn, now)
                    if now - beaten >= self.options.beat_seconds:
                        beaten = now
                        await instances.beat(conn, self.instance_id)
                    if now - renewed >= LEASE_SECONDS / 3:
                        renewed = now
                        await self._renew(conn)
            except psycopg.OperationalError as error:
                log.warning("the heartbeat failed: %s", error)

    async def _tell_running(self, conn: Connection, now: float) -> None:
        late = [
            slot
            for slot in self._slots.values()
            if not slot.told_running and now - slot.begun >= self.options.running_after_seconds
        ]
        if late:
            owners = await inbox.settle(conn, self.instance_id, [_settlement(slot, Report.RUNNING) for slot in late])
            for slot in late:
                slot.told_running = True
                if slot.message.task_id not in owners:
                    self._drop(slot)
            await notify(conn, map(owner_channel, owners.values()))

    async def _renew(self, conn: Connection) -> None:
        slots = list(self._slots.values())
        if slots:
            ours = await queue.renew(conn, [slot.delivery for slot in slots])
            for slot in slots:
                if slot.delivery.sequence not in ours:
                    self._drop(slot)

    def _drop(self, slot: Slot) -> None:
        """The task is no longer ours: cancelled, or taken for dead."""
        slot.cancelled = True
        if slot.task:
            slot.task.cancel()

    # Tasks

    def _wake(self) -> None:
        """From any thread: handlers that are not async run in one of their own."""
        self._loop.call_soon_threadsafe(self._signals.poke, self._wake_channel)

    def _start(self, delivery: Delivery) -> None:
        try:
            message = TaskMessage.model_validate(delivery.body)
        except ValidationError as error:
            log.warning("dropped a malformed task %s: %s", delivery.message_id, error.errors()[0]["msg"])
            return
        slot = Slot(delivery, message, time.monotonic())
        self._slots[delivery.sequence] = slot
        slot.task = asyncio.create_task(self._run_slot(slot), name=message.task_id)

    async def _run_slot(self, slot: Slot) -> None:
        try:
            ended = await self._run_handler(slot)
        finally:
            del self._slots[slot.delivery.sequence]
        report = Report.COMPLETED if ended.success else Report.FAILED
        self._ended.append(_settlement(slot, report, ended))
        self._wake()

    async def _run_handler(self, slot: Slot) -> Ended:
        message = slot.message
        if message.handler not in self.handlers:
            return Ended(False, None, f"this worker has no handler '{message.handler}'", "unknown_handler", False)
        handler = self.handlers[message.handler]
        try:
            async with asyncio.timeout(message.timeout_seconds):
                return await execute(handler, message.params, lambda params: self._context(slot, params))
        except TimeoutError:
            text = f"the handler ran longer than timeout_seconds ({message.timeout_seconds:g} s)"
            return Ended(False, None, text, "timeout", True)

    def _context(self, slot: Slot, params: Any) -> HandlerContext[Any]:
        message, delivery = slot.message, slot.delivery
        saved = None
        if delivery.checkpoint_phase is not None:
            saved = SavedCheckpoint(delivery.checkpoint_phase, delivery.checkpoint_data or {})
        extra = {"job_id": message.job_id, "node_id": message.node_id, "task_id": message.task_id}
        return HandlerContext(
            task_id=message.task_id,
            job_id=message.job_id,
            node_id=message.node_id,
            handler=message.handler,
            params=params,
            logger=logging.LoggerAdapter(handler_log, extra),
            reporter=self._notebook.of(delivery, message),
            item_index=message.item_index,
            attempt=message.attempt,
            retry_count=message.retry_count,
            checkpoint=saved,
            is_cancelled=lambda: slot.cancelled,
            pool=self.pool,
        )


def _settlement(slot: Slot, report: Report, ended: Ended | None = None) -> Settlement:
    return Settlement(
        sequence=slot.delivery.sequence,
        lease_token=slot.delivery.lease_token,
        message=slot.message,
        report=report,
        started_at=slot.delivery.started_at,
        output=to_json(ended.output) if ended and ended.success else None,
        error=ended.error_message if ended and not ended.success else None,
        error_code=ended.error_code[:64] if ended and not ended.success else None,
        retryable=ended.retryable if ended else True,
        metrics=to_json(ended.metrics) if ended else "{}",
    )
