"""Looks at the platform from outside while something happens to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from tests.chaos.platform import ChaosPlatform

SUPERVISE_SECONDS = 0.5
POLL_SECONDS = 0.2


@contextmanager
def supervised(platform: ChaosPlatform) -> Iterator[None]:
    """Start each process again that ends by itself, as a service manager does."""
    stop = threading.Event()

    def supervise() -> None:
        while not stop.wait(SUPERVISE_SECONDS):
            platform.keep_alive()

    thread = threading.Thread(target=supervise, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class JobWatch:
    platform: ChaosPlatform

    def ends(self) -> dict[str, float]:
        """When each job ended, by the clock of the machine, which server and users share."""
        query = "SELECT job_id, extract(epoch FROM completed_at) FROM dagapp.dag_jobs WHERE completed_at IS NOT NULL"
        return {str(job_id): float(at) for job_id, at in self.platform.rows(query)}

    def wait_until_ended(self, job_ids: Collection[str], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        missing = set(job_ids)
        while missing and time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                missing -= self.ends().keys()
            if missing:
                time.sleep(POLL_SECONDS)
        return not missing

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until every job has ended, those that geomill ordered, too."""
        deadline = time.monotonic() + seconds
        query = "SELECT EXISTS (SELECT FROM dagapp.dag_jobs WHERE completed_at IS NULL)"
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                if not self.platform.rows(query)[0][0]:
                    return True
            time.sleep(POLL_SECONDS)
        return False

    def wait_for_more(self, than: int, seconds: float) -> bool:
        """Wait until more jobs have ended than before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                if self.count() > than:
                    return True
            time.sleep(POLL_SECONDS)
        return False

    def count(self) -> int:
        return int(self.platform.rows("SELECT count(*) FROM dagapp.dag_jobs WHERE completed_at IS NOT NULL")[0][0])
