"""Circuits in a worker: they decide which tasks may begin, and follow how tasks end.

The state is in the database, for all workers. Nothing is written while nothing fails. Only workers that have tasks with
a circuit breaker read it, at most once a second.
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
"""Codes that are no failures of the handler."""


@dataclass(slots=True)
class _Observation:
    """How the tasks of one handler ended since the last write."""

    policy: CircuitBreaker
    success: bool = False
    failures: int = 0
    error_code: str = ""
    error_message: str = ""


class Breakers:
    def __init__(self) -> None:
        self._circuits: dict[str, Circuit] = {}
        self._read_at = float("-inf")
        self._failing: set[str] = set()
        self._observations: dict[str, _Observation] = {}

    async def admit(self, conn: Connection, leased: Sequence[Slot]) -> Sequence[Slot]:
        """Return the slots that may begin. The other tasks go back to their queue until the next probe may run."""
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
        """Record how a task ended. Only retryable failures count: the task itself caused the others."""
        policy = message.circuit_breaker
        if policy is None or ended is None:
            return
        if ended.success:
            if message.handler in self._failing or message.handler in self._observations:
                self._observations[message.handler] = _Observation(policy, success=True)
        elif ended.retryable and ended.error_code not in IGNORED:
            record = self._observations.setdefault(message.handler, _Observation(policy))
            record.failures = record.failures + 1 if record.error_code == ended.error_code else 1
            record.error_code, record.error_message = ended.error_code, ended.error_message

    async def tell(self, conn: Connection) -> None:
        for handler, record in list(self._observations.items()):
            if record.success:
                await circuits.succeeded(conn, handler)
                self._failing.discard(handler)
            if record.failures:
                await self._failed(conn, handler, record)
            if self._observations.get(handler) is record:
                del self._observations[handler]
            self._read_at = float("-inf")

    async def _failed(self, conn: Connection, handler: str, record: _Observation) -> None:
        opened = await circuits.failed(
            conn, handler, record.policy, record.failures, record.error_code, record.error_message
        )
        self._failing.add(handler)
        if opened:
            log.warning(
                "the circuit of %s is open for %g s: %s", handler, record.policy.open_seconds, record.error_message,
                extra={"action": "circuit_opened", "handler": handler, "error_code": record.error_code},
            )  # fmt: skip

    async def _may_begin(self, conn: Connection, handler: str, policy: CircuitBreaker) -> bool:
        circuit = self._circuits.get(handler)
        if circuit is None or circuit.state is CircuitState.CLOSED:
            return True
        if await circuits.probe(conn, handler, policy):
            log.info("a task probes the open circuit of %s", handler, extra={"action": "circuit_probe"})
            return True
        return False

    @property
    def _any_open(self) -> bool:
        return any(circuit.state is CircuitState.OPEN for circuit in self._circuits.values())

    async def _refresh(self, conn: Connection) -> None:
        if self._any_open or time.monotonic() - self._read_at > FRESH_SECONDS:
            self._circuits = {circuit.handler: circuit for circuit in await circuits.read(conn)}
            self._failing |= {circuit.handler for circuit in self._circuits.values() if circuit.failures}
            self._read_at = time.monotonic()
