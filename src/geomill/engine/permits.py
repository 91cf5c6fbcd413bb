"""Sends a permit to Service Bus for each task that was dispatched, after the commit.

    round or claim committed ─► owed, in memory ─► sent in batches, again and again until Service Bus takes them

Permits are not stored. If this process dies before it has sent them, or if too many are owed, workers that wait look
into the database themselves (queues/servicebus/permits.py). A queue that no worker serves gets a permit now and then,
so that a scaler that starts workers by the length of the queue sees it.

Weakness: a permit for a retry is due by the clock of Service Bus, while the task is due by that of the database. If the
first is ahead, the permit may find no task, and the task waits for the next look of a worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from geomill.domain.engine.permit import Permit
from geomill.domain.ids import new_id
from geomill.engine.batch import RoundBatch
from geomill.errors import BusUnavailable, UnavailableError
from geomill.queues.servicebus import Bus
from geomill.queues.servicebus.bus import Posting, message_id_of
from geomill.store import attendance
from geomill.store.duties import Duties
from geomill.store.pool import Pool

log = logging.getLogger(__name__)

DUTY = "service_bus"
MOST_OWED = 20_000
"""The most permits of a queue that are kept while Service Bus is away. Later ones replace earlier ones."""
BATCH = 500
TTL_SECONDS = 86_400.0
LATE = timedelta(seconds=0.1)
"""A permit for a retry comes a little later than the task is due, rather than a little earlier."""
PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
LASTING_PAUSE = 15.0


@dataclass
class PermitSender:
    bus: Bus
    pool: Pool
    duties: Duties
    queue_names: Collection[str] = ()
    """The queues whose senders are opened at the start: the first message would wait a second or two for its link."""
    remind_seconds: float = 30.0
    _owed: defaultdict[str, deque[Permit]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=MOST_OWED)))
    _called: asyncio.Event = field(default_factory=asyncio.Event)

    def owe(self, batches: Iterable[RoundBatch]) -> None:
        """Note the tasks of committed rounds."""
        for batch in batches:
            for permit in batch.permits():
                self._owed[permit.queue_name].append(permit)
                self._called.set()

    def owe_again(self, queue_names: Iterable[str]) -> None:
        """Note tasks that wait again, by their queues."""
        for queue_name in queue_names:
            self._owed[queue_name].append(Permit(queue_name=queue_name, task_id=new_id()))
            self._called.set()

    @property
    def owed(self) -> int:
        return sum(map(len, self._owed.values()))

    async def _warm_up(self) -> None:
        try:
            await self.bus.warm_up(self.queue_names)
        except BusUnavailable as error:
            log.warning("%s", error)
            self.duties.failed(DUTY, error)

    async def send_for_ever(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop."""
        await self._warm_up()
        failures = 0
        while True:
            await self._called.wait()
            self._called.clear()
            troubles = [error for name in list(self._owed) if (error := await self._send(name))]
            if not troubles:
                failures = 0
                self.duties.passed(DUTY)
                continue
            self.duties.failed(DUTY, troubles[0])
            if not failures:
                log.warning("%s; %d permits wait", troubles[0], self.owed)
            lasting = all(error.lasting for error in troubles)
            await asyncio.sleep(LASTING_PAUSE if lasting else PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1
            self._called.set()

    async def _send(self, queue_name: str) -> BusUnavailable | None:
        """Send what is owed to a queue. Returns the error if some of it still is."""
        owed = self._owed[queue_name]
        while owed:
            permits = [owed.popleft() for _ in range(min(BATCH, len(owed)))]
            try:
                await self.bus.send(queue_name, list(map(_posting, permits)))
            except BusUnavailable as error:
                room = MOST_OWED - len(owed)
                owed.extendleft(reversed(permits[:room]))
                return error
        return None

    async def remind_for_ever(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop."""
        while True:
            await asyncio.sleep(self.remind_seconds)
            try:
                async with self.pool.connection() as conn:
                    unserved = await attendance.unserved(conn)
            except (psycopg.Error, UnavailableError) as error:
                log.debug("the queues that nobody serves could not be read: %s", error)
                continue
            self.owe_again(queue.queue_name for queue in unserved if queue.workflow_id is None)


def _posting(permit: Permit) -> Posting:
    return Posting(
        message_id_of(permit.task_id),
        permit.model_dump_json(exclude_defaults=True),
        TTL_SECONDS,
        permit.due_at + LATE if permit.due_at else None,
        permit.job_id or None,
    )
