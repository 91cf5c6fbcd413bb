"""The options of a worker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from geomill.queues.postgres import LEASE_SECONDS
from geomill.store.instances import BEAT_SECONDS, SILENT_SECONDS
from geomill.worker.children.surroundings import Wishes


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class WorkerOptions:
    queues: tuple[str, ...]
    weights: Mapping[str, int] = field(default_factory=dict)
    """The weights of queues. The default is 1."""
    concurrency: int = 16
    processes: int = field(default_factory=cpus)
    """The number of children that are kept ready, if any handler needs one."""
    spare: int = 1
    """How many tasks beyond `concurrency`, and heavy ones beyond `processes`, run for a tenant that has none here."""
    memory_mb: int | None = None
    tasks_per_process: int = 100
    wishes: Wishes = field(default_factory=Wishes)
    """The operator's settings for children."""
    drain_seconds: float = 30.0
    grace_seconds: float = 0.75
    """The time between asking a handler to stop and forcing it."""
    handler_wait_seconds: float = 60.0
    """How long tasks wait for a handler that no worker of their queue has."""
    poll_seconds: float = 1.0
    check_seconds: float = 0.5
    """How often the leases of running tasks are checked. A cancelled task has none."""
    running_after_seconds: float = 1.0
    beat_seconds: float = BEAT_SECONDS
    silent_seconds: float = SILENT_SECONDS
    """After this time without a heartbeat, orchestrators give the worker's tasks to others."""
    lease_seconds: float = LEASE_SECONDS
