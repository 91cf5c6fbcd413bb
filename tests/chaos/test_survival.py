"""The platform survives full disks, no connection left, wrong clocks, killed task processes, and a gateway that dies
between commit and answer. Real roles with default settings; the faults are short."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.chaos.faults import FAULTS, FaultScene
from tests.chaos.invariants import violations
from tests.chaos.platform import ChaosPlatform
from tests.chaos.publishers import Publisher, wrong_lives
from tests.chaos.users import Users, ordinary
from tests.chaos.watch import JobWatch, supervised

pytestmark = pytest.mark.slow
PATIENCE = 180.0
SHORT_SECONDS = 2.0
SURVIVED = [
    "no-connection",
    "clock-behind",
    "clock-ahead",
    "task-process-killed",
    "tables-full",
    "wal-full",
    "zone-full",
]
SLOW_COMMIT = """
CREATE FUNCTION chaos.linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON dagapp.dag_queue DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.queue_name = 'dag-jobs') EXECUTE FUNCTION chaos.linger();
"""


@pytest.fixture(scope="module")
def scene() -> Iterator[FaultScene]:
    with ChaosPlatform() as platform, supervised(platform):
        scene = FaultScene(platform, Users(platform, 1), Publisher(platform), random.Random(1))
        yield scene
        assert not violations(platform, scene.users.orders, platform.ledger.lines()), "lost, doubled or wrong"


def eventually(scene: FaultScene, query: str, expected: list[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while (rows := scene.platform.rows(query)) != expected:
        assert time.monotonic() < deadline, f"{query}: {rows}\n{scene.platform.log_tail()}"
        time.sleep(0.02)


@pytest.mark.parametrize("name", SURVIVED)
def test_jobs_and_assets_outlive_it(scene: FaultScene, name: str) -> None:
    fault = FAULTS[name]
    if fault.needs in scene.platform.missing:
        pytest.skip(f"{fault.needs}: {scene.platform.missing[fault.needs]}")
    users, publisher = Users(scene.platform, 1), Publisher(scene.platform)
    chance = random.Random(name)
    publisher.names = name.replace("-", "")
    publisher.start()
    for number in range(3):
        users.submit(ordinary(f"{name}-before-{number}", chance))
    with fault.act(FaultScene(scene.platform, users, publisher, chance)):
        users.stop.wait(SHORT_SECONDS)
    for number in range(3):
        users.submit(ordinary(f"{name}-after-{number}", chance))
    scene.users.orders += users.orders
    assert JobWatch(scene.platform).wait_until_ended([order.job_id for order in users.orders], PATIENCE)
    assert publisher.finish(PATIENCE), scene.platform.log_tail()
    assert not wrong_lives(scene.platform, publisher)


def test_a_gateway_killed_between_commit_and_answer_doubles_nothing(scene: FaultScene) -> None:
    platform = scene.platform
    order = ordinary("between-commit-and-answer", random.Random(3))
    body = {"workflow_id": order.workflow_id, "input_params": order.inputs, "idempotency_key": order.key}
    answers: list[object] = []

    def send() -> None:
        with platform.client(0, timeout=PATIENCE) as client:
            try:
                answers.append(client.post("/api/v1/jobs", json=body).status_code)
            except httpx.HTTPError as error:
                answers.append(error)

    platform.execute(SLOW_COMMIT)
    sender = threading.Thread(target=send)
    sender.start()
    gateway = platform.processes["gateway"][0]
    # The commit waits in the server. The gateway is frozen before it can hear of it, and never wakes up again.
    eventually(scene, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", [(1,)])
    os.kill(gateway.pid, signal.SIGSTOP)
    committed = f"SELECT count(*) FROM dagapp.dag_jobs WHERE job_id = '{order.job_id}'"
    eventually(scene, committed, [(1,)])
    platform.execute("DROP TRIGGER linger ON dagapp.dag_queue")
    assert not answers
    gateway.kill()
    sender.join()
    assert isinstance(answers[0], httpx.HTTPError)

    scene.users.submit(order, number=1)
    assert order.accepted
    assert JobWatch(platform).wait_until_ended([order.job_id], PATIENCE)
