"""Circuit breakers, as a worker sees them: whose tasks it may begin, and what their ends say.

The state is in the database, for all workers. While nothing fails, nothing is written, and it is read once a second
at most, and only by workers that have tasks with a breaker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from geomill.domain.engine.circuit import Circuit, CircuitBreaker, CircuitState
from geomill.domain.engine.message import TaskMessage
from geomill.queues import postgres as queue
from geomill.sdk.execution import Ended
from geomill.store import circuits
from geomill.store.pool import Connection
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0
IGNORED = frozenset({"cancelled"})
"""Codes that say nothing about the handler."""


@dataclass(slots=True)
class _Seen:
    """What the tasks of one handler said since it was last told."""

    policy: CircuitBreaker
    success: bool = False
    failures: int = 0
    error_code: str = ""
    error_message: str = ""


class Breakers:
    def __init__(self) -> None:
        self._known: dict[str, Circuit] = {}
        self._read_at = float("-inf")
        self._failing: set[str] = set()
        self._seen: dict[str, _Seen] = {}

    async def admit(self, conn: Connection, leased: Sequence[Slot]) -> Sequence[Slot]:
        """Those that may begin. The others go back to their queue until the next probe may run."""
        if all(slot.message.circuit_breaker is None for slot in leased):
            return leased
        await self._refresh(conn)
        if not self._any_open:
            return leased
        admitted = []
        for slot in leased:
            policy = slot.message.circuit_breaker
            if policy is None or await self._may_begin(conn, slot.message.handler, policy):
                admitted.append(slot)
            else:
                await queue.defer(conn, [slot.delivery], policy.open_seconds)
        return admitted

    def note(self, message: TaskMessage, ended: Ended | None) -> None:
        """Only failures that may pass by themselves count: the others are the task's own."""
        policy = message.circuit_breaker
        if policy is None or ended is None:
            return
        if ended.success:
            if message.handler in self._failing or message.handler in self._seen:
                self._seen[message.handler] = _Seen(policy, success=True)
        elif ended.retryable and ended.error_code not in IGNORED:
            seen = self._seen.setdefault(message.handler, _Seen(policy))
            seen.failures = seen.failures + 1 if seen.error_code == ended.error_code else 1
            seen.error_code, seen.error_message = ended.error_code, ended.error_message

    async def tell(self, conn: Connection) -> None:
        for handler, seen in list(self._seen.items()):
            if seen.success:
                await circuits.succeeded(conn, handler)
                self._failing.discard(handler)
            if seen.failures:
                await self._failed(conn, handler, seen)
            if self._seen.get(handler) is seen:
                del self._seen[handler]
            self._read_at = float("-inf")

    async def _failed(self, conn: Connection, handler: str, seen: _Seen) -> None:
        opened = await circuits.failed(conn, handler, seen.policy, seen.failures, seen.error_code, seen.error_message)
        self._failing.add(handler)
        if opened:
            log.warning(
                "tasks of %s are held back for %g s: %s", handler, seen.policy.open_seconds, seen.error_message,
                extra={"action": "circuit_opened", "handler": handler, "error_code": seen.error_code},
            )  # fmt: skip

    async def _may_begin(self, conn: Connection, handler: str, policy: CircuitBreaker) -> bool:
        circuit = self._known.get(handler)
        if circuit is None or circuit.state is CircuitState.CLOSED:
            return True
        if await circuits.probe(conn, handler, policy):
            log.info("a task probes the open circuit of %s", handler, extra={"action": "circuit_probe"})
            return True
        return False

    @property
    def _any_open(self) -> bool:
        return any(circuit.state is CircuitState.OPEN for circuit in self._known.values())

    async def _refresh(self, conn: Connection) -> None:
        if self._any_open or time.monotonic() - self._read_at > FRESH_SECONDS:
            self._known = {circuit.handler: circuit for circuit in await circuits.read(conn)}
            self._failing |= {circuit.handler for circuit in self._known.values() if circuit.failures}
            self._read_at = time.monotonic()
