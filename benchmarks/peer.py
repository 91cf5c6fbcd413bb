"""procrastinate, the closest peer: a PostgreSQL queue in Python. Its defaults, two worker processes, tasks that do
nothing, on the same server in the same run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import procrastinate

ROOT = Path(__file__).parents[1]
REPEATS = 5
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


def measure(url: str) -> dict[str, float]:
    """In a process of its own: the app reads its address when it is imported."""
    with workers(url):
        code = "import asyncio, json; from benchmarks import peer; print(json.dumps(asyncio.run(peer.main())))"
        environ = {**os.environ, "PEER_URL": url, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", code], env=environ, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def main() -> dict[str, float]:
    async with app.open_async():
        await _chains(1, 5)
        return {
            "chain_milliseconds": 1000 * median([await _chains(1, 50) for _ in range(REPEATS)]) / 50,
            "fan_per_second": 1000 / median([await _batch(1000) for _ in range(REPEATS)]),
            "workflows_per_second": 200 / median([await _chains(200, 5) for _ in range(REPEATS)]),
        }


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
