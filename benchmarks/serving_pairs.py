"""The same question to two servers, in turns, so that a neighbour's load hits both."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from benchmarks.figures import Figure

REQUESTS = int(os.environ.get("BENCH_SERVING_REQUESTS", "300"))
CLIENTS = (1, 8)
TURN = {1: 10, 8: 40}
"""Requests to one side before it is the other's turn, by clients: so few that whatever else the machine does for a
tenth of a second hits both, and no percentile hangs on which side it met."""


@dataclass(frozen=True)
class Ask:
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ServingPair:
    what: str
    geomill: Sequence[Ask]
    bare: Sequence[Ask]


def reading(what: str, geomill: Sequence[str], bare: Sequence[str]) -> ServingPair:
    return ServingPair(what, [Ask(url) for url in geomill], [Ask(url) for url in bare])


async def measure(pair: ServingPair) -> list[Figure]:
    figures = []
    for clients in CLIENTS:
        geomill, bare = await _alternating(pair, clients)
        for name, share in (("p50", 50), ("p95", 95)):
            geomill_ms, bare_ms = (statistics.quantiles(times, n=100)[share - 1] * 1000 for times in (geomill, bare))
            what = f"{pair.what}, {clients} client{'s' if clients > 1 else ''}, {name}"
            figures.append(Figure(what, geomill_ms, "ms", f"{geomill_ms / bare_ms:.2f} times bare ({bare_ms:.1f} ms)"))
    return figures


async def _alternating(pair: ServingPair, clients: int) -> tuple[list[float], list[float]]:
    """Ask the same questions of one side and then of the other, in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=clients)) as client:
        for side in (pair.geomill, pair.bare):
            for turn in range(-20 // TURN[clients], 0):
                await _ask(client, side, turn, clients)
        for turn in range(REQUESTS // TURN[clients]):
            for side_times, side in zip(times, (pair.geomill, pair.bare), strict=True):
                side_times += await _ask(client, side, turn, clients)
    return times


async def _ask(client: httpx.AsyncClient, questions: Sequence[Ask], turn: int, clients: int) -> list[float]:
    waiting: list[int] = list(range(turn * TURN[clients], (turn + 1) * TURN[clients]))
    times: list[float] = []

    async def work() -> None:
        while waiting:
            ask = questions[waiting.pop() % len(questions)]
            begun = time.perf_counter()
            (await _send(client, ask)).raise_for_status()
            times.append(time.perf_counter() - begun)

    await asyncio.gather(*(work() for _ in range(clients)))
    return times


async def _send(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    if ask.body is None:
        return await client.get(ask.url, headers=ask.headers)
    return await client.post(ask.url, content=ask.body, headers={**ask.headers, "Content-Type": "application/json"})
