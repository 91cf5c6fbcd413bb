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
class Pair:
    what: str
    ours: Sequence[Ask]
    bare: Sequence[Ask]


def reading(what: str, ours: Sequence[str], bare: Sequence[str]) -> Pair:
    return Pair(what, [Ask(url) for url in ours], [Ask(url) for url in bare])


async def measure(pair: Pair) -> list[Figure]:
    figures = []
    for clients in CLIENTS:
        ours, bare = await _alternating(pair, clients)
        for name, share in (("p50", 50), ("p95", 95)):
            mine, theirs = (statistics.quantiles(times, n=100)[share - 1] * 1000 for times in (ours, bare))
            what = f"{pair.what}, {clients} client{'s' if clients > 1 else ''}, {name}"
            figures.append(Figure(what, mine, "ms", f"{mine / theirs:.2f} times bare ({theirs:.1f} ms)"))
    return figures


async def _alternating(pair: Pair, clients: int) -> tuple[list[float], list[float]]:
    """In turns, the same questions to one side and then to the other."""
    times: tuple[list[float], list[float]] = ([], [])
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=clients)) as client:
        for side in (pair.ours, pair.bare):
            for turn in range(-20 // TURN[clients], 0):
                await _ask(client, side, turn, clients)
        for turn in range(REQUESTS // TURN[clients]):
            for kept, side in zip(times, (pair.ours, pair.bare), strict=True):
                kept += await _ask(client, side, turn, clients)
    return times


async def _ask(client: httpx.AsyncClient, asked: Sequence[Ask], turn: int, clients: int) -> list[float]:
    waiting: list[int] = list(range(turn * TURN[clients], (turn + 1) * TURN[clients]))
    times: list[float] = []

    async def work() -> None:
        while waiting:
            ask = asked[waiting.pop() % len(asked)]
            begun = time.perf_counter()
            (await _send(client, ask)).raise_for_status()
            times.append(time.perf_counter() - begun)

    await asyncio.gather(*(work() for _ in range(clients)))
    return times


async def _send(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    if ask.body is None:
        return await client.get(ask.url, headers=ask.headers)
    return await client.post(ask.url, content=ask.body, headers={**ask.headers, "Content-Type": "application/json"})
