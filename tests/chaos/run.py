"""Bad weather. Jobs and assets go in through the gateways, faults happen, and at the end the tables are compared with
what users ordered and what handlers wrote down.

    script/chaos --jobs 2000 --seed 1              a storm of all faults
    script/chaos --fault read-only --fault crash-2 each fault alone, on a platform of its own with a quiet load
    script/chaos --fault all --json after.json     every fault alone: the recovery table
    script/chaos --broker servicebus --jobs 1000   with the peer of Azure Service Bus, and its faults
    script/chaos --hosts --fault links             each role on a host of its own: the faults of each link, alone
    script/chaos --hosts --jobs 1000               and a storm on those hosts
    script/chaos --compare before.json after.json  two such tables side by side
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.chaos import hosts
from tests.chaos.faults import FAULTS, FaultScene
from tests.chaos.invariants import violations
from tests.chaos.ledger import repeats
from tests.chaos.platform import ChaosPlatform
from tests.chaos.publishers import Publisher, wrong_lives
from tests.chaos.report import Report, recoveries
from tests.chaos.scenario import FaultOutcome, run_scenarios
from tests.chaos.spread import SpreadPlatform
from tests.chaos.storm import Storm
from tests.chaos.table import compared, of_outcomes
from tests.chaos.users import Users
from tests.chaos.watch import JobWatch, supervised

USERS = 4
ENOUGH = 0.9
"""The storm ends when this share of the jobs has ended, so that the rest ends in peace."""


def run(
    jobs: int,
    seed: int,
    *,
    patience: float = 240.0,
    longest: float = 60.0,
    faults: int = 0,
    make_platform: Callable[[], ChaosPlatform] = ChaosPlatform,
) -> Report:
    """A storm until that many jobs, nearly, and faults are done, and then peace until everything has ended. No fault
    lasts longer than `longest`."""
    begun = time.monotonic()
    with make_platform() as platform, supervised(platform):
        users, publisher = Users(platform, seed), Publisher(platform)
        storm = Storm(FaultScene(platform, users, publisher, random.Random(seed)), longest=longest)
        publisher.start()
        users.start(USERS, jobs)
        storm.start()
        watch = JobWatch(platform)
        try:
            watch.wait_for_more(int(jobs * ENOUGH), patience + jobs)
            storm.wait_for(faults, patience)
        finally:
            users.enough.set()
            storm.stop()
        if storm.error:
            raise storm.error
        users.wait(patience)
        users.stop.set()
        publisher.finish(patience / 2)
        watch.wait_until_ended([order.job_id for order in users.orders if order.accepted], patience)
        watch.wait_until_idle(patience)
        return _report(platform, users, publisher, storm, time.monotonic() - begun)


def _report(platform: ChaosPlatform, users: Users, publisher: Publisher, storm: Storm, seconds: float) -> Report:
    def number(query: str) -> int:
        return int(str(platform.rows(query)[0][0] or 0))

    lines = platform.ledger.lines()
    statuses = platform.rows("SELECT status::text, count(*) FROM dagapp.dag_jobs GROUP BY 1 ORDER BY 1")
    violated = violations(platform, users.orders, lines)
    violated += [f"refused: {refusal}" for refusal in users.refusals[:3]]
    violated += [f"asset: {wrong}" for wrong in wrong_lives(platform, publisher)]
    return Report(
        jobs=len(users.orders),
        assets=len(publisher.lives),
        seconds=seconds,
        faults=recoveries(storm.hits, JobWatch(platform).ends()),
        violations=violated,
        repeats=repeats(lines),
        taken_over=number("SELECT count(*) FROM dagapp.dag_job_events WHERE event_type = 'job_reclaimed'"),
        stale=number("SELECT count(*) FROM dagapp.dag_job_events WHERE event_type = 'result_stale'"),
        ended_by_themselves=platform.ended,
        retried_requests=publisher.retried,
        answers=dict(sorted((users.answers + publisher.answers).items())),
        skipped=platform.missing,
        verdicts={str(status): int(count) for status, count in statuses},
        log=platform.log_tail() if violated else "",
    )


def _storm(arguments: argparse.Namespace) -> bool:
    report = run(arguments.jobs, arguments.seed, make_platform=_platform(arguments))
    _say(str(report))
    _keep(arguments.json, report.record())
    if report.violations:
        _say(report.log)
    return not report.violations


def _platform(arguments: argparse.Namespace) -> Callable[[], ChaosPlatform]:
    return partial(SpreadPlatform if arguments.hosts else ChaosPlatform, broker=arguments.broker)


def _names(arguments: argparse.Namespace) -> list[str]:
    """Return the faults that were asked for, once each. `all` has those of links only where there are links."""
    several = {
        "all": [fault.name for fault in FAULTS.values() if fault.needs != "hosts" or arguments.hosts],
        "links": [fault.name for fault in FAULTS.values() if fault.needs == "hosts"],
    }
    return list(dict.fromkeys(name for word in arguments.fault for name in several.get(word, [word])))


def _one_by_one(arguments: argparse.Namespace) -> bool:
    outcomes: list[FaultOutcome] = []
    for outcome in run_scenarios(
        _names(arguments), seed=arguments.seed, patience=arguments.patience, make_platform=_platform(arguments)
    ):
        outcomes.append(outcome)
        for violation in outcome.violations:
            _say(f"{outcome.fault}: VIOLATED: {violation}")
        _say(of_outcomes([outcome]).splitlines()[-1])
        _keep(arguments.json, [outcome.record() for outcome in outcomes])
    _say("\n" + of_outcomes(outcomes))
    return not any(outcome.violations for outcome in outcomes)


def _keep(path: Path | None, record: object) -> None:
    if path:
        path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the figures there, too.")
    parser.add_argument(
        "--fault", action="append", choices=["all", "links", *FAULTS], metavar="NAME", help="Repeatable."
    )
    parser.add_argument("--patience", type=float, default=60.0, help="Seconds to wait for a recovery.")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="Two files of figures.")
    parser.add_argument("--broker", choices=["postgres", "servicebus"], default="postgres")
    parser.add_argument("--hosts", action="store_true", help="Each role on a host of its own. Needs root.")
    parser.add_argument("--list", action="store_true", help="The names of the faults.")
    arguments = parser.parse_args()
    if arguments.hosts and (reason := hosts.why_not()):
        parser.error(f"--hosts: {reason}")
    if arguments.list:
        _say("\n".join(f"{fault.name:20} {fault.title}" for fault in FAULTS.values()))
        return
    if arguments.compare:
        _say(compared(*(json.loads(path.read_text(encoding="utf-8")) for path in arguments.compare)))
        return
    sys.exit(0 if (_one_by_one(arguments) if arguments.fault else _storm(arguments)) else 1)


if __name__ == "__main__":
    main()
