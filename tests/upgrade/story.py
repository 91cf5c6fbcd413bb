"""An upgrade while users work: the previous release alone, the migration, both releases side by side, and ours alone.

Processes of both releases are killed while they work, and the other release takes over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.chaos.invariants import violations
from tests.chaos.platform import Process
from tests.chaos.publishers import Publisher, wrong_lives
from tests.chaos.users import Order, Users, holding, ordinary
from tests.chaos.watch import JobWatch
from tests.upgrade.platform import FORMER, NEWER, MixedPlatform

PATIENCE_SECONDS = 180.0
USERS = 2
PAUSE_SECONDS = 0.2
JOBS = 30
"""Jobs that must end before each next act."""
LIVES = 2
"""Whole lives of assets among both releases: one public, one for official use."""
HELD = 6
HOLD_SECONDS = 8.0
OF_FORMER, OF_NEWER = 0, 1
"""The number of a process, which says its release."""
RESULTS = """
    SELECT j.owner_id, r.worker_id, count(*) FROM dagapp.dag_task_results AS r JOIN dagapp.dag_jobs AS j USING (job_id)
    WHERE r.status = 'completed' AND j.owner_id IS NOT NULL AND r.worker_id IS NOT NULL GROUP BY 1, 2"""


@dataclass
class UpgradeReport:
    acts: list[tuple[str, float]] = field(default_factory=list)
    """The steps of the upgrade, and their seconds."""
    shared: dict[str, int] = field(default_factory=dict)
    """Tasks by the releases of the job's owner and of the worker."""
    violations: list[str] = field(default_factory=list)
    jobs: int = 0
    assets: int = 0
    log: str = field(default="", repr=False)

    def __str__(self) -> str:
        lines = [f"{seconds:7.1f} s  {name}" for name, seconds in self.acts]
        lines += [f"{self.jobs} jobs, {self.assets} assets"]
        lines += [f"{count:7} tasks  {who}" for who, count in sorted(self.shared.items())]
        return "\n".join([*lines, *(f"VIOLATED: {text}" for text in self.violations or [])])


class UpgradeStory:
    def __init__(self, platform: MixedPlatform) -> None:
        self.platform = platform
        self.report = UpgradeReport()
        self.users = Users(platform, "upgrade", pause=PAUSE_SECONDS)
        self.orders = Users(platform, "acts")
        self.watch = JobWatch(platform)

    def run(self) -> UpgradeReport:
        self.users.start(USERS)
        self._act("the previous release works alone", self._work_alone)
        self._act("our release migrates the database, and the previous one works on", self._migrate)
        self._act("our roles start beside the previous ones", self.platform.join)
        self._act("both releases work", self._work_together)
        self._act("stage jobs and cancelled jobs, each through both gateways", self._cross_gateways)
        self._act("the previous orchestrator is killed, ours takes over", lambda: self._take_over(OF_FORMER, NEWER))
        self._act("our orchestrator is killed, the previous one takes over", lambda: self._take_over(OF_NEWER, FORMER))
        self._act("the previous worker is killed, ours runs its tasks", lambda: self._lose_worker(OF_FORMER))
        self._act("our worker is killed, the previous one runs its tasks", lambda: self._lose_worker(OF_NEWER))
        self._act("the previous roles are replaced one after the other", self._replace)
        self._act("everything has ended", self._end)
        self._check()
        return self.report

    def _act(self, name: str, act: Callable[[], None]) -> None:
        begun = time.monotonic()
        act()
        self.platform.note_instances()
        self.report.acts.append((name, time.monotonic() - begun))
        print(f"{self.report.acts[-1][1]:7.1f} s  {name}", flush=True)

    def _work_alone(self) -> None:
        self.platform.note_instances()
        self.early = self._publisher("early")
        self._more_jobs()

    def _migrate(self) -> None:
        self.platform.migrate()
        self._more_jobs()
        self._finish(self.early)

    def _work_together(self) -> None:
        self.platform.note_instances()
        self.both = self._publisher("both")
        self._until("assets live among both releases", lambda: sum(life.whole for life in self.both.lives) >= LIVES)
        self._finish(self.both)
        chance = random.Random("both")
        self._until("workers run tasks of the other release's jobs", lambda: self._are_shared(chance))

    def _cross_gateways(self) -> None:
        for number, other in ((OF_FORMER, OF_NEWER), (OF_NEWER, OF_FORMER)):
            order = holding(f"cancelled-{number}", HELD, PATIENCE_SECONDS)
            order.verdict, order.result = "cancelled", None
            self._submit(order, number)
            self._until_begun(order)
            self._ask(other, "POST", f"/api/v1/jobs/{order.job_id}/cancel")
            stages = self._ask(number, "POST", "/api/jobs/submit/hello_world", {"name": f"n{number}", "greetings": 5})
            self._until("a stage job completes", partial(self._is_complete, other, stages["status_url"]))
            self._ended([order])

    def _is_complete(self, number: int, path: str) -> bool:
        status = self._ask(number, "GET", path)["status"]
        assert status != "FAILED", path
        return bool(status == "COMPLETED")

    def _take_over(self, number: int, heir: str) -> None:
        """Kill an orchestrator that owns a job. The other release's must finish the job."""
        order = holding(f"owned-{number}", HELD, HOLD_SECONDS)
        with self.platform.alone("orchestrator", number):
            self._submit(order)
            self._until_begun(order)
        assert self._owner(order) not in (heir, None)
        victim = self.platform.kill("orchestrator", number)
        self._until(f"the {heir} orchestrator owns the job", lambda: self._owner(order) == heir)
        self._ended([order])
        self._come_back("orchestrator", victim)

    def _lose_worker(self, number: int) -> None:
        """Kill a worker that runs tasks. The other release's must run them."""
        order = holding(f"lost-{number}", HELD, HOLD_SECONDS)
        with self.platform.alone("worker", number):
            self._submit(order)
            self._until_begun(order)
        victim = self.platform.kill("worker", number)
        self._ended([order])
        self._come_back("worker", victim)

    def _come_back(self, role: str, victim: Process) -> None:
        self.platform.replace(role, victim)
        self.platform.wait_for_roles()
        self.platform.note_instances()

    def _replace(self) -> None:
        orders = [holding(f"replaced-{number}", HELD, HOLD_SECONDS) for number in range(3)]
        for role, order in zip(("worker", "orchestrator", "gateway"), orders, strict=True):
            self._submit(order)
            self._until_begun(order)
            self.platform.upgrade(role)
            self.platform.wait_for_roles()
            self._more_jobs()
        self._ended(orders)

    def _end(self) -> None:
        self.users.stop.set()
        self.users.wait(PATIENCE_SECONDS)
        self._ended([*self.users.orders, *self.orders.orders])

    def _check(self) -> None:
        orders, report = [*self.users.orders, *self.orders.orders], self.report
        report.jobs = len(orders)
        report.violations = violations(self.platform, orders, self.platform.ledger.lines())
        for publisher in (self.early, self.both):
            report.assets += len(publisher.lives)
            report.violations += [f"asset: {wrong}" for wrong in wrong_lives(self.platform, publisher)]
        report.violations += [f"refused: {text}" for users in (self.users, self.orders) for text in users.refusals]
        report.violations += [
            f"a {role} has ended by itself with {process.poll()}"
            for role, processes in self.platform.processes.items()
            for process in processes
            if process.poll() is not None
        ]
        report.log = self.platform.log_tail(100)

    # Steps

    def _publisher(self, name: str) -> Publisher:
        publisher = Publisher(self.platform, name)
        publisher.start()
        return publisher

    def _finish(self, publisher: Publisher) -> None:
        assert publisher.finish(PATIENCE_SECONDS), f"{publisher.lives}\n{self.platform.log_tail()}"

    def _submit(self, order: Order, number: int = OF_FORMER) -> None:
        self.orders.submit(order, number)

    def _more_jobs(self) -> None:
        more = self.watch.wait_for_more(self.watch.count() + JOBS, PATIENCE_SECONDS)
        assert more, self.platform.log_tail()

    def _ended(self, orders: Sequence[Order]) -> None:
        missing = [order.job_id for order in orders if order.accepted]
        assert self.watch.wait_until_ended(missing, PATIENCE_SECONDS), self.platform.log_tail()

    def _until_begun(self, order: Order) -> None:
        count = order.inputs["count"]
        self._until("tasks begin", lambda: self.platform.ledger.begun(order.job_id) >= count)

    def _until(self, what: str, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not true():
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}\n{self.platform.log_tail()}"
            time.sleep(0.1)

    def _ask(self, number: int, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        with self.platform.client(number, timeout=PATIENCE_SECONDS) as client:
            answer = client.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _owner(self, order: Order) -> str | None:
        """Return the release of the job's owner."""
        rows = self.platform.rows(f"SELECT owner_id FROM dagapp.dag_jobs WHERE job_id = '{order.job_id}'")
        return self.platform.instances.get(str(rows[0][0])) if rows else None

    def _are_shared(self, chance: random.Random) -> bool:
        """Return whether each release has run tasks of the other's jobs. Submits a job more if not."""
        self.report.shared = {}
        for owner_id, worker_id, count in self.platform.rows(RESULTS):
            owner, worker = (self.platform.instances.get(str(name), "?") for name in (owner_id, worker_id))
            key = f"{owner} orchestrator, {worker} worker"
            self.report.shared[key] = self.report.shared.get(key, 0) + int(count)
        crossed = (f"{FORMER} orchestrator, {NEWER} worker", f"{NEWER} orchestrator, {FORMER} worker")
        if all(self.report.shared.get(key) for key in crossed):
            return True
        self._submit(ordinary(f"shared-{len(self.orders.orders)}", chance), len(self.orders.orders))
        return False


def run(platform: MixedPlatform) -> UpgradeReport:
    with platform:
        story = UpgradeStory(platform)
        try:
            return story.run()
        finally:
            for users in (story.users, story.orders):
                users.stop.set()
            story.users.wait(PATIENCE_SECONDS)
