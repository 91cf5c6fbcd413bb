"""The metrics of /metrics: this gateway's requests and connections, and the state of the platform.

Orchestrators and workers run as other processes, on other machines. Their state is in the database, so every gateway
can report it. The database is read at most once in five seconds, however many clients scrape.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import psycopg
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from geomill import __version__
from geomill.api.disks import Disks
from geomill.api.storage_figures import StorageFigures
from geomill.contract.operations import StorageView
from geomill.domain.engine.circuit import Circuit
from geomill.domain.tally import BUCKETS as TALLY_BUCKETS
from geomill.domain.tally import COUNT, SUM, Tally
from geomill.storage.space import Space
from geomill.store import attendance, circuits, metrics, tallies
from geomill.store.metrics import DeadLetters, Holder, InstanceHealth, QueueDepth
from geomill.store.pool import Connection, Pool

FRESH_SECONDS = 5.0
PATIENCE_SECONDS = 2.0
USAGE_SECONDS = 60.0
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

READERS: dict[str, Callable[[Connection], Awaitable[Any]]] = {
    "queues": metrics.queues,
    "active_jobs": metrics.active_jobs,
    "recent_jobs": metrics.recent_jobs,
    "events": metrics.events,
    "dead_letters": metrics.dead_letters,
    "instances": metrics.instances,
    "tallies": tallies.read,
    "circuits": circuits.read,
    "connections": metrics.connections,
    "horizon": metrics.horizon,
    "consumers": attendance.consumers,
    "database_bytes": metrics.database_bytes,
}


class Figures(Collector):
    def __init__(
        self,
        pool: Pool,
        readers: Mapping[str, Any] = READERS,
        disks: Disks | None = None,
        storage: StorageFigures | None = None,
    ) -> None:
        """`readers` are the queries to run. A database without the platform's tables has none."""
        self._pool, self._readers, self._disks, self._storage = pool, readers, disks, storage
        self._usage: StorageView | None = None
        self._usage_due = float("-inf")
        self._spaces: list[Space] = []
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._figures: dict[str, Any] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self.requests = Counter(
            "geomill_http_requests", "Requests answered", ("method", "route", "status"), registry=self._registry
        )
        self.seconds = Histogram(
            "geomill_http_request_seconds",
            "Time to answer",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._registry,
        )

    async def text(self) -> bytes:
        async with self._reading:
            if time.monotonic() - self._read_at > FRESH_SECONDS:
                self._figures = await self._read()
                self._spaces = await self._disks.look() if self._disks else []
                await self._read_usage()
                self._read_at = time.monotonic()
        return generate_latest(self._registry)

    async def _read_usage(self) -> None:
        """Read the use of storage once a minute, even if that fails: it reads the inventories of all assets."""
        if self._storage is None or time.monotonic() < self._usage_due:
            return
        self._usage_due = time.monotonic() + USAGE_SECONDS
        try:
            self._usage = await self._storage.look()
        except psycopg.Error:
            self._usage = None

    async def _read(self) -> dict[str, Any]:
        """Read all figures. A figure that takes too long is left out."""
        figures: dict[str, Any] = {}
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                for name, reader in self._readers.items():
                    try:
                        figures[name] = await reader(conn)
                    except psycopg.errors.QueryCanceled:
                        continue
        except psycopg.Error:
            return figures
        return figures

    def collect(self) -> Iterator[Metric]:
        yield _gauge("geomill_info", "This gateway", ("version",), [((__version__,), 1)])
        yield from self._own()
        yield from _space(self._spaces)
        if self._usage:
            yield from _storage(self._usage)
        readable = [((name,), float(name in self._figures)) for name in self._readers]
        yield _gauge(
            "geomill_figures_readable", "Whether these figures could be read from the database", ("figures",), readable
        )
        for name, family in _FAMILIES.items():
            if name in self._figures:
                yield from family(self._figures[name])

    def _own(self) -> Iterator[Metric]:
        stats = self._pool.get_stats()
        names = {"pool_size": "open", "pool_available": "idle", "pool_max": "most", "requests_waiting": "awaited"}
        values = [((label,), float(stats.get(name, 0))) for name, label in names.items()]
        yield _gauge("geomill_gateway_connections", "Database connections of this gateway", ("state",), values)


Values = Iterable[tuple[tuple[str, ...], float]]


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Values) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family


def _queues(depths_by_queue: list[QueueDepth]) -> Iterator[Metric]:
    depths = [((depth.queue_name, "waiting"), float(depth.waiting)) for depth in depths_by_queue]
    depths += [((depth.queue_name, "leased"), float(depth.leased)) for depth in depths_by_queue]
    yield _gauge("geomill_queue_messages", "Messages on a queue", ("queue", "state"), depths)
    ages = [((depth.queue_name,), depth.oldest_seconds) for depth in depths_by_queue]
    yield _gauge(
        "geomill_queue_oldest_seconds", "Age of the oldest message that is ready to be taken", ("queue",), ages
    )


def _space(spaces: list[Space]) -> Iterator[Metric]:
    if spaces:
        free = [((space.place,), float(space.free_bytes)) for space in spaces]
        yield _gauge(
            "geomill_space_free_bytes", "Free space on the disk of a zone or of the data folder", ("place",), free
        )
        total = [((space.place,), float(space.total_bytes)) for space in spaces]
        yield _gauge("geomill_space_total_bytes", "Size of that disk", ("place",), total)


def _storage(usage: StorageView) -> Iterator[Metric]:
    """Yield the use of storage by zone and platform. A series for each asset would be too many."""
    owned = [(zone.zone, platform) for zone in usage.zones for platform in zone.platforms]
    sizes = [((zone, platform.platform_id), float(platform.bytes)) for zone, platform in owned]
    yield _gauge("geomill_storage_bytes", "Bytes of a platform's files in a zone", ("zone", "platform"), sizes)
    counts = [((zone, platform.platform_id), float(platform.objects)) for zone, platform in owned]
    yield _gauge("geomill_storage_objects", "Files of a platform in a zone", ("zone", "platform"), counts)
    yield _gauge("geomill_feature_bytes", "Size of the tables of features", (), [((), float(usage.features.bytes))])


def _database_bytes(size: int) -> Iterator[Metric]:
    yield _gauge("geomill_database_bytes", "Size of the database", (), [((), float(size))])


def _counts(name: str, text: str, label: str) -> Callable[[dict[str, int]], Iterator[Metric]]:
    def family(counts: dict[str, int]) -> Iterator[Metric]:
        yield _gauge(name, text, (label,), [((key,), float(value)) for key, value in counts.items()])

    return family


def _dead_letters(dead_letters: list[DeadLetters]) -> Iterator[Metric]:
    values = [((letters.queue_name, letters.reason), float(letters.letters)) for letters in dead_letters]
    yield _gauge("geomill_dead_letters", "Messages that could not be handled", ("queue", "reason"), values)


def _instances(instances: list[InstanceHealth]) -> Iterator[Metric]:
    alive = dict.fromkeys(("orchestrator", "worker"), 0.0)
    for instance in instances:
        alive[instance.role] = alive.get(instance.role, 0.0) + instance.alive
    yield _gauge("geomill_instances_alive", "Processes", ("role",), [((role,), count) for role, count in alive.items()])
    failing = sum(trouble.get("failing", False) for instance in instances for trouble in instance.duties.values())
    yield _gauge("geomill_duties_failing", "Maintenance duties that fail now", (), [((), float(failing))])


_COUNTERS = {
    "transitions": "Changes of a node's state",
    "retries": "Attempts that followed a failed attempt",
    "stale_results": "Results that were ignored because they came too late",
    "jobs_reclaimed": "Jobs taken over from processes that died",
}
_HISTOGRAMS = {
    "job_claim_seconds": "From submission to claim of a job",
    "step_wait_seconds": "From dispatch to start of a step",
    "step_run_seconds": "From start to end of a step",
}


def _tallies(tallies: list[Tally]) -> Iterator[Metric]:
    """Yield the counters and histograms, summed over all processes since the database was created."""
    by_name: dict[str, dict[float, float]] = {}
    for tally in tallies:
        by_name.setdefault(tally.name, {})[tally.bucket] = tally.value
    for name, text in _COUNTERS.items():
        yield CounterMetricFamily(f"geomill_{name}", text, value=by_name.get(name, {}).get(COUNT, 0.0))
    for name, text in _HISTOGRAMS.items():
        yield _histogram(f"geomill_{name}", text, by_name.get(name, {}))


def _histogram(name: str, text: str, counts: dict[float, float]) -> HistogramMetricFamily:
    total, buckets = 0.0, []
    for bound in (*TALLY_BUCKETS, math.inf):
        total += counts.get(bound, 0.0)
        buckets.append(("+Inf" if bound == math.inf else f"{bound:g}", total))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=counts.get(SUM, 0.0))


def _circuits(circuits: list[Circuit]) -> Iterator[Metric]:
    """Yield the circuits of handlers that have failed."""
    opened = [((circuit.handler,), float(circuit.opened_at is not None)) for circuit in circuits]
    yield _gauge("geomill_circuit_open", "Whether tasks of a handler are held back", ("handler",), opened)
    failures = [((circuit.handler,), float(circuit.failures)) for circuit in circuits]
    yield _gauge("geomill_circuit_failures", "Failures of a handler in a row", ("handler",), failures)


def _horizon(holders: list[Holder]) -> Iterator[Metric]:
    seconds = max((holder.seconds or 0.0 for holder in holders), default=0.0)
    yield _gauge("geomill_oldest_transaction_seconds", "Age of the oldest open transaction", (), [((), seconds)])
    behind = max((holder.transactions for holder in holders), default=0)
    text = "Transactions begun since the oldest one that keeps dead rows from being vacuumed"
    yield _gauge("geomill_vacuum_horizon_transactions", text, (), [((), float(behind))])


_FAMILIES: dict[str, Callable[[Any], Iterator[Metric]]] = {
    "queues": _queues,
    "active_jobs": _counts("geomill_jobs_active", "Unfinished jobs", "status"),
    "recent_jobs": _counts("geomill_jobs_recent", "Jobs created in the last 5 minutes", "status"),
    "events": _counts(
        "geomill_events_recent", "Events of the last 5 minutes, retries and takeovers among them", "type"
    ),
    "dead_letters": _dead_letters,
    "consumers": _counts("geomill_queue_consumers", "Processes that take from a queue", "queue"),
    "database_bytes": _database_bytes,
    "instances": _instances,
    "tallies": _tallies,
    "circuits": _circuits,
    "connections": _counts("geomill_database_connections", "Sessions of the database", "application"),
    "horizon": _horizon,
}
