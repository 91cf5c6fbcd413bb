"""One fault after another while users work. Seeded: the same seed gives the same sequence."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from geomill.errors import EmbeddedError
from tests.chaos.faults import FAULTS, Fault, FaultScene
from tests.chaos.watch import JobWatch

PATIENCE_SECONDS = 90.0
PAUSE_SECONDS = (0.3, 1.2)


@dataclass(frozen=True)
class Hit:
    fault: Fault
    begun: float
    over: float


@dataclass
class Storm:
    scene: FaultScene
    faults: Sequence[Fault] = tuple(FAULTS.values())
    longest: float = 60.0
    """Seconds that one fault may last."""
    hits: list[Hit] = field(default_factory=list)
    error: Exception | None = None
    """The error that ended the storm itself. Then the storm proves nothing."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        missing = self.scene.platform.missing
        self._possible = [
            fault
            for fault in self.faults
            if fault.weight and fault.needs not in missing and fault.range[0] <= self.longest
        ]
        self._watch = JobWatch(self.scene.platform)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_for(self, hits: int, seconds: float) -> None:
        """Wait for so many faults, or until the time is over."""
        deadline = time.monotonic() + seconds
        while len(self.hits) < hits and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.1)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self.scene.chance.uniform(*PAUSE_SECONDS)):
                self._strike()
        except Exception as error:  # noqa: BLE001  the run raises it
            self.error = error

    def _strike(self) -> None:
        chance = self.scene.chance
        fault = chance.choices(self._possible, [fault.weight for fault in self._possible])[0]
        seconds = min(chance.uniform(*fault.range), self.longest)
        begun = time.time()
        try:
            with fault.act(self.scene):
                self._stop.wait(seconds)
            done = self._watch.count()
        except (psycopg.OperationalError, psycopg.errors.LockNotAvailable, EmbeddedError):
            return  # the server still recovers from the fault before
        self.hits.append(Hit(fault, begun, time.time()))
        # The next fault comes when something was done again: where processes are killed faster than they can start,
        # nothing would ever end.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not self._stop.is_set():
            if self._watch.wait_for_more(done, 1.0):
                return
