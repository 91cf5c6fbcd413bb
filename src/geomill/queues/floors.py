"""The floor of a line: the sequence from which a consumer reads it, while reading from its head is slow.

A line is read from its head. Messages that were taken leave dead entries in the index until they are vacuumed. While a
transaction is open, for hours perhaps, they cannot be vacuumed, and each look reads all of them again. So a consumer
measures its looks. Once they are slow, it remembers the lines and how far it has come in each, and begins there. A look
from the heads, which sees everything, may take a thirtieth of the time, and is made at least every few seconds.

Only speed depends on floors. Messages behind the floor (a retry that is due, a lease that was given back, an insert
that committed late) and new lines are found by the next look from the heads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from geomill.queues.turns import TenantLine

LOOKS = 3
"""A queue is slow if all of its last looks were: a single slow look may have met a busy machine."""
DEAR_SECONDS = 0.003
"""A look is slow if it takes that much longer than the quickest look, and at least twice as long."""
ROW_SECONDS = 0.0001
"""The time that a look may take for each message that it receives."""
SHARE = 30
"""After a slow look from the heads, none is made for that many times its excess."""
LONGEST_SECONDS = 8.0
LAG_SECONDS = 0.2
"""A floor lags behind by that much: sequences are assigned before the commit, and in another order."""
MOST_LINES = 256


@dataclass(slots=True)
class Effort:
    """The cost of looks from the heads of a queue, and so whether to do without them for now."""

    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _least: float = float("inf")
    _due_at: float = 0.0

    def note(self, seconds: float, rows: int, now: float) -> None:
        net = max(seconds - rows * ROW_SECONDS, 0.0)
        self._recent.append(net)
        self._least = min(self._least, net)
        self._due_at = now + min(SHARE * self.excess(), LONGEST_SECONDS)

    def excess(self) -> float:
        """Return by how many seconds the last looks were longer than the quickest one; 0 if that is not slow."""
        excess = min(self._recent) - self._least if len(self._recent) == LOOKS else 0.0
        return excess if excess > max(DEAR_SECONDS, self._least) else 0.0

    def spare(self, now: float) -> bool:
        return now < self._due_at

    def wait(self, now: float) -> float:
        """Return the seconds until the next look from the heads is due."""
        return max(self._due_at - now, 0.0)


@dataclass(slots=True)
class Floor:
    """The sequence from which to read a line. It follows the messages that were taken, a moment later."""

    sequence: int = 0
    _next: int = 0
    _reached: int = 0
    _turned: float = 0.0

    def reach(self, sequence: int, now: float) -> None:
        self._reached = max(self._reached, sequence)
        if now - self._turned >= LAG_SECONDS:
            self.sequence, self._next, self._turned = self._next, self._reached, now


class Floors:
    """The floors of a consumer's lines, and the cost of its looks at each queue."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._efforts: dict[str, Effort] = {}
        self._floors: dict[TenantLine, Floor] = {}

    def bounded(self, queue_name: str) -> bool:
        """Return whether the next look begins at the floors of the lines that were remembered."""
        effort = self._efforts.get(queue_name)
        return effort is not None and effort.spare(self._clock())

    def dear(self, queue_name: str) -> bool:
        effort = self._efforts.get(queue_name)
        return effort is not None and effort.excess() > 0

    def looked(self, queue_names: Iterable[str], seconds: float, received: int) -> None:
        """Record how long a look from the heads of these queues took."""
        now = self._clock()
        for name in queue_names:
            self._efforts.setdefault(name, Effort()).note(seconds, received, now)

    def reached(self, received: Iterable[tuple[str, int, str, int]]) -> None:
        """Record queue, priority, tenant and sequence of received messages, and so remember their lines."""
        highest: dict[tuple[str, int, str], int] = {}
        for queue_name, priority, tenant, sequence in received:
            key = (queue_name, priority, tenant)
            if sequence > highest.get(key, -1):
                highest[key] = sequence
        now = self._clock() if highest else 0.0
        for key, sequence in highest.items():
            line = TenantLine(*key)
            floor = self._floors.pop(line, None) or Floor()
            floor.reach(sequence, now)
            self._floors[line] = floor
            if len(self._floors) > MOST_LINES:
                del self._floors[next(iter(self._floors))]

    def lines(self, queue_names: Collection[str]) -> dict[TenantLine, int]:
        """Return the remembered lines of these queues, each with its floor."""
        return {line: floor.sequence for line, floor in self._floors.items() if line.queue_name in queue_names}
