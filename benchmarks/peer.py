"""procrastinate, the closest peer: a PostgreSQL queue in Python. Its defaults, two worker processes, tasks that do
nothing, on the same server in the same run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import procrastinate

ROOT = Path(__file__).parents[1]
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=os.environ.get("PEER_URL", "")), import_paths=["benchmarks.peer"]
)


@app.task(name="noop")
async def noop() -> None:
    return None


@app.task(name="step")
async def step(left: int) -> None:
    if left > 1:
        await step.defer_async(left=left - 1)


@contextmanager
def workers(url: str, count: int = 2) -> Iterator[None]:
    environ = {**os.environ, "PEER_URL": url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "procrastinate", "--app", "benchmarks.peer.app"]
    subprocess.run([*command, "schema", "--apply"], env=environ, check=True, capture_output=True, cwd=ROOT)
    started = [
        subprocess.Popen([*command, "worker", "--concurrency", "100"], env=environ, cwd=ROOT, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    try:
        time.sleep(3)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


class Procrastinate:
    """Asks a process of its own, since the app reads its address when it is imported."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def chain_milliseconds(self) -> float:
        return 1000 * self._seconds("chains 1 50") / 50

    def fan_per_second(self) -> float:
        return 1000 / self._seconds("batch 1000")

    def workflows_per_second(self) -> float:
        return 200 / self._seconds("chains 200 5")

    def _seconds(self, work: str) -> float:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(f"{work}\n")
        requests.flush()
        return float(answers.readline())


@contextmanager
def running(url: str) -> Iterator[Procrastinate]:
    environ = {**os.environ, "PEER_URL": url, "PYTHONPATH": str(ROOT)}
    code = "import asyncio; from benchmarks import peer; asyncio.run(peer.answer())"
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with workers(url), subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        peer = Procrastinate(process)
        peer.chain_milliseconds()
        yield peer
        process.kill()


async def answer() -> None:
    """Print the seconds of each piece of work that is requested, until the input ends."""
    async with app.open_async():
        for line in sys.stdin:
            kind, *numbers = line.split()
            seconds = await (_chains if kind == "chains" else _batch)(*map(int, numbers))
            print(seconds, flush=True)


async def _chains(count: int, length: int) -> float:
    expected = await _done() + count * length
    begun = time.perf_counter()
    await step.batch_defer_async(*({"left": length} for _ in range(count)))
    return await _until(expected, begun)


async def _batch(count: int) -> float:
    expected = await _done() + count
    begun = time.perf_counter()
    await noop.batch_defer_async(*({} for _ in range(count)))
    return await _until(expected, begun)


async def _done() -> int:
    query = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status = 'succeeded'"
    row = await app.connector.execute_query_one_async(query)
    return int(row["n"])


async def _until(expected: int, begun: float) -> float:
    while await _done() < expected:  # noqa: ASYNC110  another process does the work
        await asyncio.sleep(0.01)
    return time.perf_counter() - begun
