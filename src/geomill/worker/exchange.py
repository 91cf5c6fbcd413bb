"""One exchange with the database: results and notes go in, new tasks come out.

The reports come first. The notes of a task are written before its result, in one transaction, and the owners are
notified at once. Then comes the lease, in its own transaction, because it need not be flushed to disk. If a crash of
the server loses the lease, the task is leased again, as after a crash of its worker.

Results and notes leave memory only after the commit. After a failure the next exchange sends them again, and the lease
tokens reject those that had arrived.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import psycopg
from pydantic import ValidationError

from geomill.domain.engine.message import TaskMessage, malformed
from geomill.domain.engine.task import TaskReport
from geomill.queues import postgres as queue
from geomill.queues.floors import Floors
from geomill.queues.postgres import Delivery, Lessee
from geomill.queues.turns import TenantTurns
from geomill.store import checkpoints, inbox, logs
from geomill.store.checkpoints import CheckpointWrite
from geomill.store.inbox import Settlement
from geomill.store.locking import impatient
from geomill.store.logs import LogWrite
from geomill.store.pool import Connection
from geomill.store.signals import notify, owner_channel
from geomill.worker.notes import Note, Notebook, TaskNotes
from geomill.worker.shares import NO_LIMITS, Shares
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

UNSTORABLE = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
)
"""Errors by which the database refuses the content. Sending the same again would not help."""


LOCKED_SECONDS = 1.0
"""How long the report of a task waits after one of its rows was locked."""


ANNOUNCE_SECONDS = 30.0
"""How long a node or item has no second event of a checkpoint. Some handlers save several a second."""


@dataclass
class Exchange:
    worker_id: str
    notebook: Notebook
    shares: Shares
    lease_seconds: float
    turns: TenantTurns = field(default_factory=TenantTurns)
    floors: Floors = field(default_factory=Floors)
    ended: list[Settlement] = field(default_factory=list)
    malformed: list[tuple[Delivery, str]] = field(default_factory=list)
    reported: Callable[[Sequence[Settlement]], None] | None = None
    """Called with the reports that are in the database."""
    _locked: dict[int, float] = field(default_factory=dict)
    """Message → when to try again, for tasks with locked rows. They are reported apart from the others."""
    _announced: dict[checkpoints.Place, float] = field(default_factory=dict)
    """Node or item → when its latest event of a checkpoint was written."""

    @property
    def pressing(self) -> bool:
        """Whether there are reports to send at once."""
        return bool(self.malformed) or any(settlement.sequence not in self._locked for settlement in self.ended)

    async def once(self, conn: Connection, free: int, limits: Mapping[str, int] = NO_LIMITS) -> list[Slot]:
        """Write all reports and lease up to `free` tasks, of each queue no more than its limit."""
        ended, malformed, notes = self.ended[:], self.malformed[:], self.notebook.take()
        if self._locked:
            notes, ended = await self._report_locked(conn, notes, ended)
        if ended or malformed or notes:
            await self._report(conn, notes, ended, malformed)
        return await self._lease(conn, self.shares.of(free, limits), limits) if free > 0 else []

    async def _lease(self, conn: Connection, shares: Mapping[str, int], limits: Mapping[str, int]) -> list[Slot]:
        leased = await queue.lease(
            conn,
            shares,
            self.worker_id,
            self.lease_seconds,
            limits=limits,
            turns=self.turns,
            floors=self.floors,
            relaxed=True,
        )
        self.shares.found_empty(leased.empty)
        return await self._slots(conn, leased.deliveries)

    async def lease_for_newcomer(self, conn: Connection, queues: Sequence[str], holders: Collection[str]) -> list[Slot]:
        """Lease the next task of a tenant that is not among the holders, if there is one."""
        bounded = {name for name in queues if self.floors.bounded(name)}
        bounded_lines = self.floors.lines(bounded)
        heads = [name for name in queues if name not in bounded]
        waiting = [*bounded_lines, *(await queue.lines(conn, heads) if heads else [])]
        lines = [line for line in waiting if line.tenant not in holders]
        if not lines:
            return []
        first = max(lines, key=attrgetter("priority"))
        chosen = self.turns.shares([line for line in lines if line.queue_name == first.queue_name], 1)
        lessee = Lessee(self.worker_id, self.lease_seconds, relaxed=True)
        deliveries = await queue.lease_lines(conn, lessee, chosen, bounded_lines)
        self.turns.given([first.queue_name])
        return await self._slots(conn, deliveries)

    async def _slots(self, conn: Connection, deliveries: Sequence[Delivery]) -> list[Slot]:
        slots = self._parsed(deliveries)
        again = [slot for slot in slots if slot.delivery.delivery_count > 1 or slot.message.attempt > 1]
        if again:
            await _recall(conn, again)
            await _look_back(conn, again)
        return slots

    def _parsed(self, deliveries: Sequence[Delivery]) -> list[Slot]:
        """Return slots for the valid messages. Malformed ones go to the dead letters."""
        now, slots = time.monotonic(), []
        for delivery in deliveries:
            try:
                message = TaskMessage.received(delivery.body)
            except (ValueError, RecursionError) as error:
                self.malformed.append((delivery, _first(error)))
                log.warning("a malformed task goes to the dead letters: %s", delivery.message_id)
            else:
                slots.append(Slot(delivery, message, TaskNotes(self.notebook, delivery, message), now))
        return slots

    async def _report(
        self,
        conn: Connection,
        notes: Sequence[Note],
        ended: Sequence[Settlement],
        malformed: Sequence[tuple[Delivery, str]],
    ) -> None:
        try:
            try:
                owners = await self._transact(conn, notes, ended, malformed)
            except UNSTORABLE as error:
                log.warning("a report cannot be stored; the reports are sent one by one: %s", error)
                owners = await self._one_by_one(conn, notes, ended, malformed)
            except psycopg.errors.LockNotAvailable as error:
                log.warning("a row of a task is locked; the tasks are reported one by one: %s", error)
                await self._report_apart(conn, notes, ended)
                return
        except BaseException:  # including a cancellation: the notes go back into the notebook
            self.notebook.put_back(notes)
            raise
        self._forget(ended)
        del self.malformed[: len(malformed)]
        await notify(conn, map(owner_channel, set(owners.values())))

    def _forget(self, reported: Sequence[Settlement]) -> None:
        if self.reported:
            self.reported(reported)
        gone = set(map(id, reported))
        self.ended[:] = [settlement for settlement in self.ended if id(settlement) not in gone]

    async def _report_locked(
        self, conn: Connection, notes: Sequence[Note], ended: Sequence[Settlement]
    ) -> tuple[list[Note], list[Settlement]]:
        """Report the tasks whose rows were locked, if they are due. Returns the notes and results of the others."""
        now = time.monotonic()
        due = {sequence for sequence, at in self._locked.items() if at <= now}
        locked_notes = [note for note in notes if note.delivery.sequence in self._locked]
        self.notebook.put_back([note for note in locked_notes if note.delivery.sequence not in due])
        for sequence in due:
            del self._locked[sequence]
        await self._report_apart(
            conn,
            [note for note in locked_notes if note.delivery.sequence in due],
            [settlement for settlement in ended if settlement.sequence in due],
        )
        apart = due | self._locked.keys()
        return (
            [note for note in notes if note.delivery.sequence not in apart],
            [settlement for settlement in ended if settlement.sequence not in apart],
        )

    async def _report_apart(self, conn: Connection, notes: Sequence[Note], ended: Sequence[Settlement]) -> None:
        """Report each task in its own transaction, without waiting for locks. Tasks with locked rows are kept for
        later."""
        note_of = {note.delivery.sequence: note for note in notes}
        ends = {settlement.sequence: settlement for settlement in ended}
        async with impatient(conn):
            for sequence in sorted(note_of.keys() | ends.keys()):
                note = [note_of[sequence]] if sequence in note_of else []
                end = [ends[sequence]] if sequence in ends else []
                try:
                    owners = await self._transact(conn, note, end, [])
                except psycopg.errors.LockNotAvailable:
                    self._locked[sequence] = time.monotonic() + LOCKED_SECONDS
                    self.notebook.put_back(note)
                except UNSTORABLE:
                    owners = await self._one_by_one(conn, note, end, [])
                    self._forget(end)
                    await notify(conn, map(owner_channel, set(owners.values())))
                else:
                    self._forget(end)
                    await notify(conn, map(owner_channel, set(owners.values())))

    async def _transact(
        self,
        conn: Connection,
        notes: Sequence[Note],
        ended: Sequence[Settlement],
        malformed: Sequence[tuple[Delivery, str]],
    ) -> dict[int, str]:
        """Write the reports. Returns the owners to notify, by sequence.

        Results without notes are one statement and need no transaction. For a single result the commit itself notifies
        the owner. This saves a round trip. It makes commits wait for each other, which matters only when there are
        many.
        """
        if len(ended) == 1 and not notes and not malformed:
            await inbox.settle(conn, self.worker_id, ended, called=True)
            return {}
        if not notes and not malformed:
            return await inbox.settle(conn, self.worker_id, ended)
        announced = self._unannounced(notes)
        async with conn.transaction():
            await write_notes(conn, notes)
            await checkpoints.announce(conn, self.worker_id, announced)
            await queue.refuse(conn, malformed)
            owners = await inbox.settle(conn, self.worker_id, ended) if ended else {}
        self._announced |= dict.fromkeys(map(_place, announced), time.monotonic())
        return owners

    def _unannounced(self, notes: Sequence[Note]) -> list[CheckpointWrite]:
        """Return the checkpoints whose node or item has had no event of a checkpoint for a while."""
        if not any(note.checkpoint for note in notes):
            return []
        since = time.monotonic() - ANNOUNCE_SECONDS
        self._announced = {place: at for place, at in self._announced.items() if at > since}
        return [write for write in _checkpoints(notes) if _place(write) not in self._announced]

    async def _one_by_one(
        self,
        conn: Connection,
        notes: Sequence[Note],
        ended: Sequence[Settlement],
        malformed: Sequence[tuple[Delivery, str]],
    ) -> dict[int, str]:
        """Write the reports one by one, so that one that cannot be stored fails only its own task."""
        for note in notes:
            try:
                await self._transact(conn, [note], [], [])
            except UNSTORABLE as error:
                log.warning("the notes of %s were dropped: %s", note.message.task_id, error)
        owners: dict[int, str] = {}
        for settlement in ended:
            try:
                owners |= await self._transact(conn, [], [settlement], [])
            except UNSTORABLE as error:
                owners |= await self._transact(conn, [], [_refused(settlement, error)], [])
        await self._transact(conn, [], [], malformed)
        return owners


async def write_notes(conn: Connection, notes: Sequence[Note]) -> None:
    leased = [(note.delivery.sequence, note.delivery.lease_token, note) for note in notes]
    await checkpoints.save(conn, _checkpoints(notes))
    await queue.report_progress(
        conn, [(sequence, token, *note.progress) for sequence, token, note in leased if note.progress]
    )
    await logs.insert(conn, [LogWrite(note.message, level, text) for note in notes for level, text in note.lines])


def _checkpoints(notes: Sequence[Note]) -> list[CheckpointWrite]:
    return [
        CheckpointWrite(note.delivery.sequence, note.delivery.lease_token, note.message, *note.checkpoint)
        for note in notes
        if note.checkpoint
    ]


def _place(write: CheckpointWrite) -> checkpoints.Place:
    return write.message.job_id, write.message.node_id, write.message.item_index


async def _recall(conn: Connection, begun: Sequence[Slot]) -> None:
    """Read the checkpoints of tasks that have run before."""
    saved = await checkpoints.read(conn, [slot.message for slot in begun])
    for slot in begun:
        message = slot.message
        slot.checkpoint = saved.get((message.job_id, message.node_id, message.item_index))


async def _look_back(conn: Connection, again: Sequence[Slot]) -> None:
    """Mark the tasks that may take down their worker (trial.py), and note the code that ran before."""
    leased = [(slot.delivery, slot.message.task_id_before) for slot in again]
    precedents = await queue.precedents(conn, leased)
    for slot in again:
        precedent = precedents[slot.delivery.sequence]
        slot.suspect, slot.version_before = precedent.suspect, precedent.handler_version


def _refused(settlement: Settlement, error: psycopg.Error) -> Settlement:
    text = f"the database refuses the result: {error.diag.message_primary or type(error).__name__}"
    return replace(
        settlement,
        report=TaskReport.FAILED,
        output=None,
        metrics="{}",
        error=text,
        error_code="invalid_output",
        retryable=False,
    )


def _first(error: Exception) -> str:
    return malformed(error) if isinstance(error, ValidationError) else f"body: {error}"
