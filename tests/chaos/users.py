"""Users who submit jobs through the gateways: at least once, as a client must. The key of an order is chosen first, so
that sending it again is the same job."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from geomill.domain.ids import id_of_key
from tests.chaos.platform import ChaosPlatform

AGAIN_SECONDS = 0.2
SLOW_SECONDS = 1.0
NO_ANSWER = "no answer"


@dataclass
class Order:
    """A job that somebody wants, and how it must end. `verdict` is `any` where both ends are right."""

    key: str
    workflow_id: str
    inputs: dict[str, Any]
    verdict: str = "completed"
    result: dict[str, Any] | None = None
    sent_at: float = 0.0
    accepted: bool = False

    @property
    def job_id(self) -> str:
        return id_of_key(self.key)


def ordinary(key: str, chance: random.Random) -> Order:
    size, hopeless = chance.choice([0, 0, 1, 3, 8]), chance.random() < 0.1
    inputs = {"size": size, "fail_times": chance.choice([0, 0, 1, 2]), "hopeless": hopeless}
    verdict = "failed" if hopeless else "completed"
    return Order(key, "chaos", inputs, verdict, None if hopeless else {"items": size, "steps": 4})


def holding(key: str, count: int, seconds: float) -> Order:
    return Order(key, "hold", {"count": count, "seconds": seconds}, result={"items": count})


def deadly(key: str) -> Order:
    return Order(key, "deadly", {}, verdict="failed")


@dataclass
class Users:
    platform: ChaosPlatform
    seed: object
    pause: float = 0.0
    """Seconds between two orders of one user."""
    orders: list[Order] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)
    enough: threading.Event = field(default_factory=threading.Event)
    refusals: list[str] = field(default_factory=list)
    """Answers that no fault explains."""
    _threads: list[threading.Thread] = field(default_factory=list)
    _clients: dict[tuple[int, int], httpx.Client] = field(default_factory=dict)

    def start(self, users: int, jobs: int | None = None) -> None:
        """Start the users, each in a thread, until `stop` is set; or with `jobs`, until so many are accepted in all and
        `enough` is set. Beyond that number they are slow."""
        for number in range(users):
            share = None if jobs is None else jobs // users + (1 if number < jobs % users else 0)
            thread = threading.Thread(target=self._work, args=(number, share), daemon=True)
            self._threads.append(thread)
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Return whether all users have ended."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def submit(self, order: Order, number: int = 0) -> None:
        """Send the order until it is accepted. An order that was never accepted may exist or not."""
        self.orders.append(order)
        order.sent_at = time.time()
        body = {"workflow_id": order.workflow_id, "input_params": order.inputs, "idempotency_key": order.key}
        for turn in itertools.count(number):
            if self._send(self._client(number, turn), body):
                order.accepted = True
                return
            if self.stop.wait(AGAIN_SECONDS):
                return

    def _client(self, number: int, turn: int) -> httpx.Client:
        """Return a client. Each user has one for each gateway."""
        gateway = turn % self.platform.gateways
        if (number, gateway) not in self._clients:
            self._clients[number, gateway] = self.platform.client(gateway)
        return self._clients[number, gateway]

    def _work(self, number: int, share: int | None) -> None:
        chance = random.Random(f"{self.seed}/{number}")
        for turn in itertools.count():
            beyond = share is not None and turn >= share
            if beyond and self.enough.is_set():
                return
            self.submit(ordinary(f"job-{self.seed}-{number}-{turn}", chance), number)
            if self.stop.wait(SLOW_SECONDS if beyond else self.pause):
                return

    def _send(self, client: httpx.Client, body: dict[str, Any]) -> bool:
        try:
            answer = client.post("/api/v1/jobs", json=body)
        except httpx.HTTPError:
            self.answers[NO_ANSWER] += 1
            return False
        self.answers[str(answer.status_code)] += 1
        if answer.status_code in (200, 202):
            assert answer.json()["job_id"] == id_of_key(body["idempotency_key"])
            return True
        if 400 <= answer.status_code < 500 and answer.status_code != 429:
            self.refusals.append(f"{json.dumps(body)}: {answer.status_code} {answer.text}")
        return False
