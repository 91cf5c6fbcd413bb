"""The engine, end to end, with real processes: W1 to W7, beside bare PostgreSQL and procrastinate in the same run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import time
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from benchmarks import bare, peer
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, running, settled
from benchmarks.server import database

LARGE = 100_000
REPEATS = 5
"""geomill, the bare program and the peer take turns, and each figure is a median: a machine with neighbours is half as
fast in one minute as in the next. The largest fan-out runs once, between two turns of the bare program."""


def run() -> list[Figure]:
    with (
        database(migrated=False) as bare_url,
        database(migrated=False) as peer_url,
        peer.running(peer_url) as procrastinate,
    ):
        bare.prepare(bare_url)
        others = Others(bare_url, procrastinate)
        figures = [Figure("bare psycopg: one commit", bare.commit_milliseconds(bare_url), "ms")]
        with database() as url, running(url, partial(chain, others=others), workers=1) as result:
            figures += _chain(result)
        with database() as url, running(url, partial(chain, others=others), workers=2) as result:
            figures += _vain(result)
        with database() as url, running(url, partial(throughput, others=others), workers=2) as result:
            figures += _throughput(result)
    with database() as url, running(url, idle, workers=1) as measured:
        figures += measured
    with database() as url, running(url, kills, orchestrators=2, workers=2) as measured:
        figures += measured
    return figures


@dataclass(frozen=True)
class Others:
    bare_url: str
    procrastinate: peer.Procrastinate

    def bare_step(self) -> float:
        return bare.chain_step_milliseconds(self.bare_url)

    def bare_loop(self) -> float:
        return bare.claim_complete_per_second(self.bare_url)


class Turns(dict[str, list[float]]):
    """The figures of each program, turn by turn."""

    def note(self, **figures: float) -> None:
        for name, figure in figures.items():
            self.setdefault(name, []).append(figure)

    def of(self, name: str) -> float:
        return statistics.median(self[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median ratio of two figures of the same turn."""
        return statistics.median(
            figure / other_figure for figure, other_figure in zip(self[name], self[other], strict=True)
        )


async def chain(client: BenchmarkClient, roles: Roles, others: Others) -> Turns:
    """W1: one orchestrator and the workers of this run. The bare program has one worker."""
    await client.run("chain5", count=20)
    turns = Turns()
    for _ in range(REPEATS):
        turns.note(
            bare=others.bare_step(),
            geomill=1000 * await client.run("chain50") / 50,
            peer=others.procrastinate.chain_milliseconds(),
        )
    return turns


async def throughput(client: BenchmarkClient, roles: Roles, others: Others) -> dict[str, Any]:
    await client.run("chain5", count=20)
    await client.run("fan", {"items": list(range(1_000))})  # sessions prepare the statements that chains do not need
    fans, workflows, large = Turns(), Turns(), Turns()
    for _ in range(REPEATS):
        fans.note(
            bare=others.bare_loop(),
            **{f"{items:,}": await _fans(client, items) for items in (1_000, 10_000)},
            peer=others.procrastinate.fan_per_second(),
        )
    before = await _costs(client)
    await _fan(client, 10_000)
    costs = {name: (after - before[name]) / 10_000 for name, after in (await _costs(client)).items()}
    for _ in range(REPEATS):
        per_second = 200 / await client.run("chain5", count=200)
        workflows.note(geomill=per_second, peer=others.procrastinate.workflows_per_second())
    around = others.bare_loop()
    large.note(geomill=await _fan(client, LARGE), peer=fans.of("peer"), bare=(around + others.bare_loop()) / 2)
    memory = max(_peak_megabytes(process.pid) for process in roles.processes["orchestrator"])
    return {"fans": fans, "costs": costs, "workflows": workflows, "large": large, "memory": memory}


async def _fans(client: BenchmarkClient, items: int, altogether: int = 20_000) -> float:
    """Return the median of several fan-outs, together as many tasks as the bare loop has in its turn."""
    return statistics.median([await _fan(client, items) for _ in range(altogether // items)])


async def _fan(client: BenchmarkClient, items: int) -> float:
    return items / await client.run("fan", {"items": list(range(items))})


async def _costs(client: BenchmarkClient) -> dict[str, float]:
    async with client.pool.connection() as conn:
        await conn.execute("SELECT pg_stat_clear_snapshot()")
    await asyncio.sleep(12)  # a session that has nothing to do hands in its statistics after ten seconds
    commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    return {
        "wal": await client.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"),
        "commits": await client.number(commits),
    }


def _chain(turns: Turns) -> list[Figure]:
    return [
        Figure("bare psycopg: chain step, two commits, two notifications", turns.of("bare"), "ms"),
        Figure(
            "W1 chain of 50, per step",
            turns.of("geomill"),
            "ms",
            f"{turns.ratio('geomill', 'bare'):.2f} times bare psycopg",
        ),
        Figure("   procrastinate", turns.of("peer"), "ms", f"{turns.ratio('peer', 'geomill'):.1f} times geomill"),
    ]


def _vain(turns: Turns) -> list[Figure]:
    note = f"{turns.ratio('geomill', 'bare'):.2f} times bare psycopg, which has one"
    return [Figure("W1 with two workers, of which one is in vain", turns.of("geomill"), "ms", note)]


def _throughput(result: dict[str, Any]) -> list[Figure]:
    fans, workflows, large = result["fans"], result["workflows"], result["large"]
    return [
        Figure("bare psycopg: claim 100, complete 100, two processes", fans.of("bare"), "tasks/s"),
        *(_fan_figure(items, fans, items) for items in ("1,000", "10,000")),
        _fan_figure(f"{LARGE:,}", large, "geomill"),
        Figure("   procrastinate, 1,000 tasks", fans.of("peer"), "tasks/s"),
        Figure(f"   peak memory of the orchestrator, {LARGE:,} items", result["memory"], "MB"),
        Figure(
            "W3 200 workflows of 5 steps",
            workflows.of("geomill"),
            "jobs/s",
            f"{workflows.ratio('geomill', 'peer'):.1f} times procrastinate",
        ),
        Figure("   procrastinate", workflows.of("peer"), "jobs/s"),
        Figure("W7 write-ahead log per task of a fan-out", result["costs"]["wal"] / 1024, "KiB"),
        Figure("   commits per task", result["costs"]["commits"], ""),
    ]


def _fan_figure(items: str, turns: Turns, name: str) -> Figure:
    note = f"{turns.ratio(name, 'peer'):.1f} times procrastinate, {turns.ratio(name, 'bare'):.0%} of the bare loop"
    return Figure(f"W2 fan-out and fan-in of {items}", turns.of(name), "tasks/s", note)


async def idle(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    """W4 and W6: the latency of a job on an idle platform, and the cost of the idle platform."""
    port = free_port()
    roles.start("gateway", "--port", str(port))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        await _until_it_answers(http)
    await settled()
    submitter = Submitter(port, await client.credential())
    delays = [await _submit_to_start(client, submitter) for _ in range(220)][20:]
    await asyncio.sleep(12)  # until every session has handed in its statistics
    seconds = 15.0
    before, transactions, begun = roles.cpu_seconds, commits(roles.url), time.perf_counter()
    await asyncio.sleep(seconds)
    seconds = time.perf_counter() - begun
    used, per_second = (roles.cpu_seconds - before) / seconds, (commits(roles.url) - transactions) / seconds
    percentiles = statistics.quantiles(delays, n=100)
    return [
        Figure("W4 HTTP submit to start of the handler, p50", percentiles[49], "ms", "from before the request"),
        Figure("   p99", percentiles[98], "ms"),
        Figure("W6 idle: orchestrator, worker and gateway", 100 * used, "% of a core"),
        Figure("   transactions", per_second, "per second", "autovacuum's included, this measurement's not"),
    ]


def commits(url: str) -> int:
    """Return the commits of the database, read from another one so that reading does not count. A statement by itself
    is a transaction, too."""
    address = urlsplit(url)
    query = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
    with psycopg.connect(address._replace(path="/postgres").geturl(), autocommit=True) as outside:
        row = outside.execute(query, [address.path.removeprefix("/")]).fetchone()
    assert row is not None
    return int(row[0])


async def _until_it_answers(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await http.get("/health/ready")).status_code == 200:
                    await http.get("/stac/", timeout=30)  # what is served beside is loaded when it is asked for
                    return
            except httpx.TransportError:
                pass  # not there yet
            await asyncio.sleep(0.1)


class Submitter:
    """The lightest client there is, which keeps its connection: httpx alone would take a millisecond."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._connection = HTTPConnection("127.0.0.1", port)
        self._headers = {**headers, "Content-Type": "application/json"}

    def submit(self, workflow_id: str) -> str:
        body = json.dumps({"workflow_id": workflow_id})
        self._connection.request("POST", "/api/v1/jobs", body, self._headers)
        with self._connection.getresponse() as answer:
            reply = json.load(answer)
        if answer.status != 202:
            raise RuntimeError(f"the gateway refused: {reply}")
        return str(reply["job_id"])


async def _submit_to_start(client: BenchmarkClient, submitter: Submitter) -> float:
    begun = time.time()
    job_id = submitter.submit("stamp")
    await client.ended([job_id])
    query = "SELECT (output ->> 'began')::float8 FROM dagapp.dag_node_states WHERE job_id = %s AND node_id = 'n0'"
    return (await client.number(query, job_id) - begun) * 1000


async def kills(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    """W5: the time from `kill -9` until the work continues."""
    await client.run("chain5", count=10)
    workers = [await _after_kill_of_worker(client, roles) for _ in range(5)]
    owners = [await _after_kill_of_owner(client, roles) for _ in range(5)]
    return [
        Figure(
            "W5 kill -9 of the worker until its task runs elsewhere", statistics.median(workers), "s", _worst(workers)
        ),
        Figure("   of the owning orchestrator until its job goes on", statistics.median(owners), "s", _worst(owners)),
    ]


def _worst(seconds: list[float]) -> str:
    return f"worst of {len(seconds)}: {max(seconds):.1f} s"


async def _after_kill_of_worker(client: BenchmarkClient, roles: Roles) -> float:
    (job_id,) = await client.submit("hold")
    holder = "SELECT i.pid FROM dagapp.dag_checkpoints c JOIN dagapp.dag_queue q ON q.message_id LIKE c.job_id || ':%%'"
    pid = await _eventually(
        client, f"{holder} JOIN dagapp.dag_instances i ON i.instance_id = q.leased_by WHERE c.job_id = %s", job_id
    )
    return await _kill_and_replace(client, roles, "worker", int(pid), job_id)


async def _after_kill_of_owner(client: BenchmarkClient, roles: Roles) -> float:
    (job_id,) = await client.submit("chain50")
    owner = "SELECT pid FROM dagapp.dag_jobs JOIN dagapp.dag_instances ON instance_id = owner_id WHERE job_id = %s"
    pid = await _eventually(client, owner, job_id)
    return await _kill_and_replace(client, roles, "orchestrator", int(pid), job_id)


async def _kill_and_replace(client: BenchmarkClient, roles: Roles, role: str, pid: int, job_id: str) -> float:
    os.kill(pid, signal.SIGKILL)
    begun = time.perf_counter()
    await client.ended([job_id])
    seconds = time.perf_counter() - begun
    roles.processes[role] = [process for process in roles.processes[role] if process.pid != pid]
    roles.start(role, *(["--concurrency", "100"] if role == "worker" else []))
    await client.ready(4)
    await asyncio.sleep(2)
    return seconds


async def _eventually(client: BenchmarkClient, query: str, *parameters: Any) -> float:
    async with asyncio.timeout(20):
        while True:
            async with client.pool.connection() as conn:
                row = await (await conn.execute(query, parameters)).fetchone()  # type: ignore[arg-type]
            if row:
                return float(next(iter(row.values())))
            await asyncio.sleep(0.005)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
