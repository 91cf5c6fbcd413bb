"""Where a consumer begins to read a line, while it is dear to begin at its head.

A line is read from its head, and what was taken leaves dead entries in the index until they are vacuumed. While
somebody holds a transaction open, for hours perhaps, they are not, and each look reads all of them again. So a consumer
measures its looks. Once they are dear, it remembers the lines and how far it has come in each, and begins there. A look
from the heads, which sees everything, is made as often as it takes a thirtieth of the time, and at least every few
seconds.

Nothing depends on it but speed. Messages behind the floor (a retry that is due, a lease that was given back, an insert
that committed late) and lines that are not known yet are found by the next look from the heads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from geomill.queues.turns import TenantLine

LOOKS = 3
"""A queue is dear if its last looks all were: one alone may have met a busy machine."""
DEAR_SECONDS = 0.003
"""So much more than the quickest look, and at least twice as long."""
ROW_SECONDS = 0.0001
"""A message that is received may take so long."""
SHARE = 30
"""A look from the heads is followed by so many times its length without one."""
LONGEST_SECONDS = 8.0
LAG_SECONDS = 0.2
"""A floor is as old as that: sequences are given before they are committed, and not in that order."""
MOST_LINES = 256


@dataclass(slots=True)
class Effort:
    """What looks from the head cost, and so whether to do without for now."""

    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _least: float = float("inf")
    _due_at: float = 0.0

    def note(self, seconds: float, rows: int, now: float) -> None:
        net = max(seconds - rows * ROW_SECONDS, 0.0)
        self._recent.append(net)
        self._least = min(self._least, net)
        self._due_at = now + min(SHARE * self.excess(), LONGEST_SECONDS)

    def excess(self) -> float:
        """Seconds by which the last looks were longer than they could be; 0 if that is not dear."""
        excess = min(self._recent) - self._least if len(self._recent) == LOOKS else 0.0
        return excess if excess > max(DEAR_SECONDS, self._least) else 0.0

    def spare(self, now: float) -> bool:
        return now < self._due_at

    def wait(self, now: float) -> float:
        """Seconds until the next look from the head is due."""
        return max(self._due_at - now, 0.0)


@dataclass(slots=True)
class Floor:
    """Follows what is taken, a moment later."""

    sequence: int = 0
    _next: int = 0
    _reached: int = 0
    _turned: float = 0.0

    def reach(self, sequence: int, now: float) -> None:
        self._reached = max(self._reached, sequence)
        if now - self._turned >= LAG_SECONDS:
            self.sequence, self._next, self._turned = self._next, self._reached, now


class Floors:
    """What a consumer remembers of its queues."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._efforts: dict[str, Effort] = {}
        self._floors: dict[TenantLine, Floor] = {}

    def bounded(self, queue_name: str) -> bool:
        """Whether the next look begins at the floors of the lines that are known."""
        effort = self._efforts.get(queue_name)
        return effort is not None and effort.spare(self._clock())

    def dear(self, queue_name: str) -> bool:
        effort = self._efforts.get(queue_name)
        return effort is not None and effort.excess() > 0

    def looked(self, queue_names: Iterable[str], seconds: float, received: int) -> None:
        """From the heads, and so long it took."""
        now = self._clock()
        for name in queue_names:
            self._efforts.setdefault(name, Effort()).note(seconds, received, now)

    def reached(self, received: Iterable[tuple[str, int, str, int]]) -> None:
        """Queue, priority, tenant and sequence of messages that were received. Their lines are known from now on."""
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
        """Those that are known, each with its floor."""
        return {line: floor.sequence for line, floor in self._floors.items() if line.queue_name in queue_names}
