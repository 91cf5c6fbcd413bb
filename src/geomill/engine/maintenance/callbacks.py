"""Calls the `callback_url` of ended jobs. Each call is made at least once and retried for up to a day.

    a job ends → find: add a row to dag_callbacks → claim an attempt for a while → call → settle, with an event

`find` searches an index that holds only ended jobs without a callback row. A trigger on the verdict would be on the hot
path, and code that writes a verdict could bypass it. A crash between verdict and call loses nothing, because the job
row stays in the index. A claim moves `due_at` behind the end of the attempt. So no other process makes the same call at
the same time, and no transaction is open during the call. A late attempt changes nothing after another one has begun.

Weakness: if a job is retried within a second of its failure, only its later end is reported.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import psycopg

from geomill.domain.engine.callback import Allowance, Callback, CallbackStatus, retry_at, sign
from geomill.domain.engine.event import EventStatus, EventType
from geomill.domain.jsonvalue import to_json
from geomill.engine.maintenance.delivery import TIMEOUT_SECONDS, NotDelivered, post
from geomill.engine.maintenance.pinning import ForbiddenAddress
from geomill.settings import CallbackSettings
from geomill.store import callbacks, events
from geomill.store.callbacks import CallbackAttempt
from geomill.store.duties import Duties
from geomill.store.events import EventWrite
from geomill.store.pool import Pool, transaction_time

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CallbackOptions:
    secret: str | None = field(default=None, repr=False)
    allowed: Allowance = field(default_factory=Allowance)
    public_url: str = ""
    concurrency: int = 8
    timeout_seconds: float = TIMEOUT_SECONDS

    @classmethod
    def of(cls, settings: CallbackSettings) -> CallbackOptions:
        secret = settings.callback_secret.get_secret_value() if settings.callback_secret else None
        return cls(secret, Allowance.of(settings.callback_allow), settings.public_url or "")

    @property
    def lease_seconds(self) -> float:
        return self.timeout_seconds * 3


@dataclass
class CallbackCaller:
    """Makes the calls in the background, at most `concurrency` at once."""

    pool: Pool
    options: CallbackOptions = field(default_factory=CallbackOptions)
    duties: Duties | None = None
    """Records failures for /health."""

    def __post_init__(self) -> None:
        self._due = asyncio.Event()
        self._calls: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Note that a call is due, as the orchestrator's look has found."""
        self._due.set()

    async def run(self) -> None:
        """Run as a duty of the orchestrator. Makes no query while no call is due."""
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                await self._try_once()
        finally:
            await self.stop()

    async def _try_once(self) -> None:
        try:
            await self.run_once()
        except psycopg.Error as error:
            log.warning("due callbacks could not be read; the next look tries again: %s", error)
            if self.duties:
                self.duties.failed("callbacks", error)
        else:
            if self.duties:
                self.duties.passed("callbacks")

    async def run_once(self) -> int:
        """Begin the calls that are due, as far as there is room. Returns how many were begun."""
        room = self.options.concurrency - len(self._calls)
        if room < 1:
            return 0
        async with self.pool.connection() as conn:
            await callbacks.find(conn, limit=500)
            attempts = await callbacks.claim(conn, room, self.options.lease_seconds)
        for attempt in attempts:
            call = asyncio.create_task(self._call(attempt), name=f"callback {attempt.callback.delivery_id}")
            self._calls.add(call)
            call.add_done_callback(self._done)
        return len(attempts)

    async def idle(self) -> None:
        """Wait until no call is under way."""
        while self._calls:
            await asyncio.gather(*self._calls)

    async def stop(self) -> None:
        """Cancel the calls under way. They are due again when their lease ends."""
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _done(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self.wake()  # there is room for another call
        if not call.cancelled() and (error := call.exception()):
            log.warning("the outcome of a callback could not be written; the call is repeated: %s", error)

    async def _call(self, attempt: CallbackAttempt) -> None:
        callback = attempt.callback
        body = to_json(self._payload(callback)).encode()
        headers = self._headers(callback, int(attempt.claimed_at.timestamp()), body)
        allowed, seconds = self.options.allowed, self.options.timeout_seconds
        try:
            status = await post(callback.url, body, headers, allowed, seconds)
        except ForbiddenAddress as error:
            await self._failed(callback, str(error), again=False)
        except NotDelivered as error:
            await self._failed(callback, str(error), again=True, status_code=error.status)
        else:
            await self._delivered(callback, status)

    def _payload(self, callback: Callback) -> dict[str, object]:
        """Return the content of the call. `result_url` leads to the stage job if the job is an attempt at one."""
        base, stage_job = self.options.public_url.rstrip("/"), callback.payload.get("stage_job_id")
        path = f"/api/jobs/status/{stage_job}" if stage_job else f"/api/v1/jobs/{callback.job_id}"
        return {**callback.payload, "result_url": f"{base}{path}"}

    def _headers(self, callback: Callback, timestamp: int, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "geomill",
            "X-Geomill-Delivery": callback.delivery_id,
            "X-Geomill-Timestamp": str(timestamp),
        }
        if self.options.secret:
            headers["X-Geomill-Signature"] = sign(self.options.secret, timestamp, body)
        return headers

    async def _delivered(self, callback: Callback, status: int) -> None:
        async with self.pool.connection() as conn, conn.transaction():
            if await callbacks.settle(conn, callback, CallbackStatus.DELIVERED, error=None, last_status=status):
                event = _event(callback, EventType.CALLBACK_DELIVERED, EventStatus.SUCCESS, answer=status)
                await events.insert(conn, [event])

    async def _failed(self, callback: Callback, error: str, *, again: bool, status_code: int | None = None) -> None:
        log.warning("the callback of job %s failed: %s", callback.job_id, error)
        async with self.pool.connection() as conn, conn.transaction():
            due_at = retry_at(callback, await transaction_time(conn)) if again else None
            status = CallbackStatus.PENDING if due_at else CallbackStatus.GIVEN_UP
            if await callbacks.settle(conn, callback, status, error=error, due_at=due_at, last_status=status_code):
                severity = EventStatus.WARNING if due_at else EventStatus.FAILURE
                event = _event(callback, EventType.CALLBACK_FAILED, severity, error=error, given_up=due_at is None)
                await events.insert(conn, [event])


def _event(callback: Callback, kind: EventType, status: EventStatus, **data: object) -> EventWrite:
    details = {"delivery_id": callback.delivery_id, "attempt": callback.attempts, **data}
    return EventWrite(callback.job_id, kind, status, data=details)
