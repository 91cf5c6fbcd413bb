"""Real orchestrators and workers, each a process of its own, on the benchmark's database."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES, JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.engine.submit import enqueue, submit
from geomill.sdk.registry import load_handlers
from geomill.store import instances, keys
from geomill.store.pool import Pool, open_pool
from geomill.store.signals import notify, queue_channel
from geomill.workflows.registry import WorkflowRegistry

GEOMILL = str(Path(sys.executable).with_name("geomill"))
ROOT = Path(__file__).parents[1]
HANDLERS = "benchmarks.handlers"
TICKS = os.sysconf("SC_CLK_TCK")


def chain(length: int, handler: str = "bench.noop") -> dict[str, Any]:
    nodes: dict[str, Any] = {"START": {"type": "start", "next": "n0"}, "END": {"type": "end"}}
    for number in range(length):
        following = f"n{number + 1}" if number < length - 1 else "END"
        nodes[f"n{number}"] = {"type": "task", "handler": handler, "next": following}
    return {"workflow_id": f"chain{length}", "name": "A chain", "nodes": nodes}


def fan() -> dict[str, Any]:
    nodes = {
        "START": {"type": "start", "next": "each"},
        "each": {"type": "fan_out", "source": "{{ inputs.items }}", "task": {"handler": "bench.noop"}, "next": "all"},
        "all": {"type": "fan_in", "aggregation": "count", "next": "END"},
        "END": {"type": "end"},
    }
    return {"workflow_id": "fan", "name": "A fan-out", "inputs": {"items": {"type": "array"}}, "nodes": nodes}


def single(name: str, handler: str) -> dict[str, Any]:
    return {**chain(1, handler), "workflow_id": name}


WORKFLOWS = (chain(50), chain(5), fan(), single("stamp", "bench.stamp"), single("hold", "bench.hold"))


@dataclass
class Roles:
    url: str
    folder: Path
    modules: tuple[str, ...] = (HANDLERS,)
    settings: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([GEOMILL, role, *options], env=self.environ, cwd=ROOT)
        self.processes.setdefault(role, []).append(process)
        return process

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "GEOMILL_LOG_LEVEL": "warning",  # a line for each submission would hide the figures
            "GEOMILL_DATABASE_URL": self.url,
            "GEOMILL_HANDLERS": ",".join(self.modules),
            "GEOMILL_WORKFLOWS": str(self.folder),
            "PYTHONPATH": str(ROOT),
            **self.settings,
        }

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of all roles so far."""
        total = 0
        for process in self.everyone():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def everyone(self) -> list[subprocess.Popen[bytes]]:
        return [process for processes in self.processes.values() for process in processes]

    def stop(self) -> None:
        for process in self.everyone():
            process.send_signal(signal.SIGTERM)
        for process in self.everyone():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def roles(
    url: str,
    *,
    orchestrators: int = 1,
    workers: int = 2,
    concurrency: int = 100,
    workflows: tuple[dict[str, Any], ...] = WORKFLOWS,
    modules: tuple[str, ...] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[Roles]:
    """`modules` are those beside the usual handlers, `settings` further variables of the environment."""
    with tempfile.TemporaryDirectory() as folder:
        for workflow in workflows:
            (Path(folder) / f"{workflow['workflow_id']}.yaml").write_text(yaml.safe_dump(workflow, sort_keys=False))
        started = Roles(url, Path(folder), (HANDLERS, *modules), settings or {})
        try:
            for _ in range(orchestrators):
                started.start("orchestrator")
            for _ in range(workers):
                started.start("worker", "--concurrency", str(concurrency))
            yield started
        finally:
            started.stop()


@dataclass
class BenchmarkClient:
    pool: Pool
    workflow_registry: WorkflowRegistry

    async def ready(self, processes: int) -> None:
        async with asyncio.timeout(60):
            while True:
                async with self.pool.connection() as conn:
                    if len(await instances.everyone(conn)) >= processes:
                        return
                await asyncio.sleep(0.05)

    async def submit(
        self, workflow_id: str, inputs: dict[str, Any] | None = None, count: int = 1, tenant: str = ""
    ) -> list[str]:
        messages = [
            JobQueueMessage(workflow_id=workflow_id, input_params=inputs or {}, tenant=tenant) for _ in range(count)
        ]
        async with self.pool.connection() as conn:
            if count == 1:
                await submit(conn, self.workflow_registry, JOBS_QUEUE, messages[0])
            else:
                await enqueue(conn, self.workflow_registry, JOBS_QUEUE, messages, Starter.OPERATORS)
                await notify(conn, [queue_channel(JOBS_QUEUE)])
        return [message.job_id for message in messages]

    async def run(self, workflow_id: str, inputs: dict[str, Any] | None = None, count: int = 1) -> float:
        """Seconds from the first submission to the last end, by the database's clock, which is this machine's: looking
        often would disturb what is measured."""
        begun = time.time()
        ids = await self.submit(workflow_id, inputs, count)
        await self.ended(ids)
        query = "SELECT extract(epoch FROM max(completed_at)) FROM dagapp.dag_jobs WHERE job_id = ANY(%s)"
        return await self.number(query, ids) - begun

    async def ended(self, ids: list[str]) -> None:
        query = "SELECT count(*) AS n FROM dagapp.dag_jobs WHERE job_id = ANY(%s) AND completed_at IS NOT NULL"
        while await self.number(query, ids) < len(ids):  # noqa: ASYNC110  another process does the work
            await asyncio.sleep(0.03)

    async def credential(self) -> dict[str, str]:
        """Headers of an operator."""
        secret = Secret.new()
        async with self.pool.connection() as conn:
            await keys.create(conn, secret, name="bench", roles=[Role.OPERATOR], created_by="bench")
        return {"Authorization": f"Bearer {secret.reveal()}"}

    async def number(self, query: str, *parameters: Any) -> float:
        async with self.pool.connection() as conn:
            row = await (await conn.execute(query, parameters)).fetchone()  # type: ignore[arg-type]
        assert row is not None
        return float(next(iter(row.values())))


async def settled(share: float = 0.1, seconds: float = 30.0) -> None:
    """Wait until the machine is quiet: processes that have just started load their libraries and start children
    ahead."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = _busy_and_all()
        await asyncio.sleep(0.5)
        busy, everything = (after - once for after, once in zip(_busy_and_all(), before, strict=True))
        if busy < share * everything:
            return


def _busy_and_all() -> tuple[int, int]:
    """Ticks of all processors so far."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


@asynccontextmanager
async def connected(started: Roles) -> AsyncIterator[BenchmarkClient]:
    """Yields a client when all roles have registered and the machine is quiet."""
    registry = load_handlers(started.modules)
    workflow_registry = WorkflowRegistry.load([started.folder], handlers=registry.info, queues=TASK_QUEUES)
    async with open_pool(started.url, size=2) as pool:
        client = BenchmarkClient(pool, workflow_registry)
        await client.ready(len(started.everyone()))
        await settled()
        yield client


@contextmanager
def running(url: str, work: Any, **options: Any) -> Iterator[Any]:
    """Run `await work(client, roles)` with the roles up; yields what it returns."""
    with roles(url, **options) as started:

        async def main() -> Any:
            async with connected(started) as client:
                return await work(client, started)

        yield asyncio.run(main())
