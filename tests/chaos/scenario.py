"""One fault on a platform with a quiet load: how long does it take until work goes on, and what does it cost?"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import psycopg

from tests.chaos.faults import FAULTS, Fault, FaultScene
from tests.chaos.invariants import violations
from tests.chaos.ledger import LedgerEntry, begun_again, repeats
from tests.chaos.platform import ChaosPlatform
from tests.chaos.publishers import Publisher, wait_for_first, wrong_lives
from tests.chaos.users import Order, Users, holding
from tests.chaos.visitors import Visitors
from tests.chaos.watch import JobWatch, supervised

HELD = 24
"""Tasks that run when the fault comes."""
HOLD_SECONDS = 15.0
"""How much longer than the fault they take."""
USERS = 2
PAUSE_SECONDS = 0.2
WARM_UP_JOBS = 40
"""Enough jobs that sessions have prepared their statements."""
SKEWS = "clock-"
"""Faults that leave processes with wrong clocks behind."""
AFTERWARDS_SECONDS = 5.0
"""How long users go on after the recovery, so that a relapse is seen."""
START_SECONDS = 60.0


@dataclass
class FaultOutcome:
    fault: str
    title: str
    skipped: str = ""
    lasted: float = 0.0
    recovery: float | None = None
    """Seconds until a job was done that was sent after the fault was over, or after it began if it lasts."""
    settled: float | None = None
    """Seconds until all was done that was sent before."""
    standstill: float = 0.0
    """The longest time in which no job ended."""
    taken_over: float | None = None
    """Seconds from its beginning until the first job or task was given to another process; None: nothing was."""
    begun_again: int = 0
    ended_again: int = 0
    at_once: int = 0
    processes_ended: int = 0
    retried_requests: int = 0
    """Assets whose job failed in bad weather, and was run again by hand."""
    answers: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    jobs: int = 0
    load: float = 0.0
    """The load of the machine in the minute after the fault."""
    log: str = ""

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "log"}


def run_scenarios(
    names: Sequence[str],
    *,
    seed: int = 1,
    patience: float = 60.0,
    make_platform: Callable[[], ChaosPlatform] = ChaosPlatform,
) -> Iterator[FaultOutcome]:
    """Each fault alone. One that left no trace leaves its platform to the next, which saves the time of a start."""
    remaining = deque(names)
    while remaining:
        with make_platform() as platform, supervised(platform):
            earlier: list[Order] = []
            clean = True
            while remaining and clean:
                outcome = _run_scenario(platform, FAULTS[remaining.popleft()], seed, patience, earlier)
                clean = not outcome.violations and outcome.recovery is not None and not outcome.fault.startswith(SKEWS)
                yield outcome


def _run_scenario(
    platform: ChaosPlatform, fault: Fault, seed: int, patience: float, earlier: list[Order]
) -> FaultOutcome:
    outcome = FaultOutcome(fault.name, fault.title)
    if fault.needs in platform.missing:
        outcome.skipped = platform.missing[fault.needs]
        outcome.recovery = 0.0
        return outcome
    users = Users(platform, f"{seed}-{fault.name}-{len(earlier)}", pause=PAUSE_SECONDS)
    publisher = Publisher(platform, f"{fault.name.replace('-', '')}{len(earlier)}n")
    scene = FaultScene(platform, users, publisher, random.Random(seed))
    _Scenario(scene, fault, outcome, patience, earlier).run()
    earlier += users.orders
    if outcome.violations:
        outcome.log = platform.log_tail()
    return outcome


@dataclass
class _Scenario:
    scene: FaultScene
    fault: Fault
    outcome: FaultOutcome
    patience: float
    earlier: Sequence[Order]
    """The earlier orders of the same platform."""

    def run(self) -> None:
        self.watch = JobWatch(self.scene.platform)
        self.visitors = Visitors(self.scene.platform)
        self._lines_before = len(self.scene.platform.ledger.lines())
        self._begin()
        ended_before = self.scene.platform.ended
        begun = time.time()
        with self.fault.act(self.scene):
            self._last(begun)
        over = time.time()
        self.outcome.lasted = over - begun
        since = begun if self.fault.lasting else over
        recovered = self._wait_for_recovery(since)
        time.sleep(AFTERWARDS_SECONDS)
        self._end(recovered)
        self._measure(begun, since)
        self.outcome.processes_ended = self.scene.platform.ended - ended_before

    def _begin(self) -> None:
        """Begin a quiet load, and tasks that last until after the fault."""
        users, platform = self.scene.users, self.scene.platform
        seconds = (0 if self.fault.until_settled else self.fault.seconds) + HOLD_SECONDS
        job = holding(f"held-{users.seed}", HELD, seconds)
        users.submit(job)
        deadline = time.monotonic() + START_SECONDS
        while platform.ledger.begun(job.job_id) < HELD:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the tasks did not begin\n{platform.log_tail()}")
            time.sleep(0.05)
        users.start(USERS)
        self.scene.publisher.start()
        self.visitors.start()
        wait_for_first(self.scene.publisher, START_SECONDS)
        self.watch.wait_for_more(self.watch.count() + WARM_UP_JOBS, START_SECONDS)
        users.answers.clear()
        self.visitors.answers.clear()

    def _last(self, begun: float) -> None:
        if not self.fault.until_settled:
            time.sleep(self.fault.seconds)
            return
        before = [order.job_id for order in self.scene.users.orders if order.sent_at < begun and order.accepted]
        if self.watch.wait_until_ended(before, self.fault.seconds):
            self._wait_for_recovery(begun)

    def _wait_for_recovery(self, since: float) -> bool:
        deadline = time.time() + self.patience
        while time.time() < deadline:
            with suppress(psycopg.OperationalError):
                if self._recovery(since) is not None:
                    return True
            time.sleep(0.1)
        return False

    def _recovery(self, since: float) -> float | None:
        ends = self.watch.ends()
        later = [ends[order.job_id] for order in self._load() if order.sent_at >= since and order.job_id in ends]
        return min(later) - since if later else None

    def _taken_over(self, begun: float, lines: Sequence[LedgerEntry]) -> float | None:
        query = "SELECT extract(epoch FROM created_at) FROM dagapp.dag_job_events WHERE event_type = 'job_reclaimed'"
        moments = [float(at) for (at,) in self.scene.platform.rows(query)]
        moments += [line.at + time.time() - time.monotonic() for line in begun_again(lines)]
        return min((at - begun for at in moments if at >= begun), default=None)

    def _load(self) -> list[Order]:
        return [order for order in list(self.scene.users.orders) if order.workflow_id == "chaos"]

    def _end(self, recovered: bool) -> None:
        """End the scenario. A platform that did not recover is not waited for a second time."""
        users = self.scene.users
        users.stop.set()
        users.wait(30)
        self.scene.publisher.finish(self.patience / 2 if recovered else 0.0)
        self.visitors.finish()
        accepted = [order.job_id for order in users.orders if order.accepted]
        again = (self.fault.seconds + HOLD_SECONDS) * 4  # what tasks take that had to begin again, some more than once
        self.watch.wait_until_ended(accepted, self.patience + again if recovered else 0.0)
        self.watch.wait_until_idle(self.patience if recovered else 0.0)

    def _measure(self, begun: float, since: float) -> None:
        platform, users, outcome = self.scene.platform, self.scene.users, self.outcome
        ends = self.watch.ends()
        outcome.jobs, outcome.load = len(users.orders), os.getloadavg()[0]
        outcome.recovery = self._recovery(since)
        before = [order for order in self._load() if order.sent_at < since and order.accepted]
        if all(order.job_id in ends for order in before):
            outcome.settled = max([0.0, *(ends[order.job_id] - since for order in before)])
        moments = sorted([begun, *(at for at in (ends.get(order.job_id, 0.0) for order in self._load()) if at > begun)])
        gaps = [later - earlier for earlier, later in pairwise(moments)]
        outcome.standstill = max(gaps, default=time.time() - begun)
        lines = platform.ledger.lines()
        outcome.taken_over = self._taken_over(begun, lines[self._lines_before :])
        repeated = repeats(lines[self._lines_before :])
        outcome.begun_again, outcome.ended_again = repeated.begun_again, repeated.ended_again
        outcome.at_once, outcome.retried_requests = repeated.at_once, self.scene.publisher.retried
        answers = users.answers + self.scene.publisher.answers + self.visitors.answers
        outcome.answers = dict(sorted(answers.items()))
        outcome.violations = violations(platform, [*self.earlier, *users.orders], lines)
        outcome.violations += [f"refused: {refusal}" for refusal in users.refusals[:3]]
        outcome.violations += [f"asset: {wrong}" for wrong in wrong_lives(platform, self.scene.publisher)]
