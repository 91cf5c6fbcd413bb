"""A chaos run: jobs go in, faults happen, and at the end the tables are asked. `script/chaos --jobs 2000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from geomill.domain.ids import new_id
from geomill.domain.message import TASK_QUEUES, JobQueueMessage
from geomill.engine.submit import submit
from geomill.sdk.registry import load_handlers
from geomill.store.pool import open_pool
from geomill.workflows.catalogue import WorkflowCatalogue
from tests.chaos.faults import Faults
from tests.chaos.invariants import violations
from tests.chaos.platform import ROOT, ChaosPlatform


@dataclass
class Report:
    jobs: int
    seconds: float
    faults: Counter[str]
    violations: list[str]
    unfinished: int
    extra_runs: int
    reclaimed: int
    stale: int
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    log: str = ""
    verdicts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.jobs} jobs in {self.seconds:.0f} s, {sum(self.faults.values())} faults"]
        lines += [f"  {count:4d}  {name}{self._recovery(name)}" for name, count in sorted(self.faults.items())]
        lines += [f"  verdicts: {self.verdicts}, unfinished: {self.unfinished}"]
        lines += [f"  jobs taken over: {self.reclaimed}, handlers run again: {self.extra_runs}, stale: {self.stale}"]
        lines += [f"  VIOLATED: {one}" for one in self.violations] or ["  every invariant holds"]
        return "\n".join(lines)

    def _recovery(self, name: str) -> str:
        """How long nothing was done after such a fault."""
        found = sorted(self.recoveries.get(name, []))
        if not found:
            return ""
        ninety = found[min(len(found) * 9 // 10, len(found) - 1)]
        middle = statistics.median(found)
        return f": work went on after {middle:.1f} s (median), {ninety:.1f} (90 %), {found[-1]:.1f} (worst)"


def run(jobs: int, seed: int, *, patience: float = 120.0, faulty: bool = True) -> Report:
    begun = time.monotonic()
    with ChaosPlatform() as platform:
        faults = Faults(platform, seed)
        with psycopg.connect(platform.url, autocommit=True) as conn:
            conn.execute("CREATE TABLE chaos.expected (job_id text PRIMARY KEY, verdict text, size integer)")
        if faulty:
            faults.start()
        try:
            asyncio.run(_submit_all(platform, jobs, random.Random(seed)))
            _wait(platform, patience=patience * 4, enough=0.9)
        finally:
            if faulty:
                faults.stop()
        platform.restart_postgres("fast") if faulty else None
        _wait(platform, patience=patience, enough=1.0)
        return _report(platform, jobs, faults, time.monotonic() - begun)


async def _submit_all(platform: ChaosPlatform, jobs: int, chance: random.Random) -> None:
    """At least once, as a client must: the id is chosen first, so that a second try is the same job."""
    registry = load_handlers(["tests.chaos.handlers"])
    folder = Path(ROOT / "tests/chaos/workflows")
    catalogue = WorkflowCatalogue.load([folder], handlers=registry.info, queues=TASK_QUEUES)
    async with open_pool(platform.url, size=1) as pool:
        for _ in range(jobs):
            size = chance.choice([0, 0, 1, 3, 8])
            hopeless = chance.random() < 0.1
            inputs = {"size": size, "fail_times": chance.choice([0, 0, 1, 2]), "hopeless": hopeless}
            message = JobQueueMessage(job_id=new_id(), workflow_id="chaos", input_params=inputs)
            while True:
                try:
                    async with pool.connection(timeout=20) as conn:
                        await conn.execute(
                            "INSERT INTO chaos.expected VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                            (message.job_id, "failed" if hopeless else "completed", size),
                        )
                        await submit(conn, catalogue, "dag-jobs", message)
                    break
                except psycopg.OperationalError:
                    await asyncio.sleep(0.2)
            platform.keep_alive()


def _wait(platform: ChaosPlatform, *, patience: float, enough: float) -> None:
    """Until that share of the jobs has ended."""
    deadline = time.monotonic() + patience
    query = (
        "SELECT (SELECT count(*) FROM dagapp.dag_jobs WHERE completed_at IS NOT NULL),"
        " (SELECT count(*) FROM chaos.expected)"
    )
    while time.monotonic() < deadline:
        platform.keep_alive()
        try:
            ended, expected = platform.rows(query)[0]
            if int(str(ended)) >= enough * int(str(expected)):
                return
        except psycopg.OperationalError:
            pass  # it is just being restarted
        time.sleep(0.2)


def _report(platform: ChaosPlatform, jobs: int, faults: Faults, seconds: float) -> Report:
    def number(query: str) -> int:
        return int(str(platform.rows(query)[0][0] or 0))

    statuses = platform.rows("SELECT status::text, count(*) FROM dagapp.dag_jobs GROUP BY 1 ORDER BY 1")
    unfinished = number("SELECT count(*) FROM dagapp.dag_jobs WHERE completed_at IS NULL")
    found = violations(platform)
    return Report(
        jobs=jobs,
        seconds=seconds,
        faults=faults.counts,
        recoveries=faults.recoveries,
        violations=found,
        unfinished=unfinished,
        extra_runs=number("SELECT sum(runs - 1) FROM chaos.effects"),
        reclaimed=number("SELECT count(*) FROM dagapp.dag_job_events WHERE event_type = 'job_reclaimed'"),
        stale=number("SELECT count(*) FROM dagapp.dag_job_events WHERE event_type = 'result_stale'"),
        log=platform.log_tail() if found else "",
        verdicts={str(status): int(str(count)) for status, count in statuses},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = run(arguments.jobs, arguments.seed)
    print(report)  # noqa: T201
    if report.violations:
        print(report.log)  # noqa: T201
        sys.exit(1)


if __name__ == "__main__":
    main()
