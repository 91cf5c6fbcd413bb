"""Several streams in one response. A browser opens six connections to a host, so a page cannot hold one per stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi.sse import ServerSentEvent

MOST_WAITING = 100


class Positions:
    """Where each of the merged streams stands, as one `Last-Event-ID`: `jobs=812&instances=a1b2`."""

    def __init__(self, text: str = "") -> None:
        self._positions = dict(parse_qsl(text))

    def get(self, topic: str) -> str:
        return self._positions.get(topic, "")

    def number(self, topic: str) -> int | None:
        """Return the position if it is a number that a row can have."""
        text = self.get(topic)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

    def move(self, topic: str, position: str) -> str:
        self._positions[topic] = position
        return urlencode(self._positions)


async def merged(
    sources: Mapping[str, AsyncIterator[ServerSentEvent]], positions: Positions
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of all sources as they come, named `topic.event`. A source that ends leaves the others; an error
    of one ends all, and the client connects again."""
    waiting: asyncio.Queue[tuple[str, ServerSentEvent]] = asyncio.Queue(MOST_WAITING)
    followers = {
        asyncio.create_task(_follow(topic, source, waiting), name=f"follow {topic}")
        for topic, source in sources.items()
    }
    pending: set[asyncio.Task[None]] = set(followers)
    arrival: asyncio.Future[tuple[str, ServerSentEvent]] | None = None
    try:
        while pending or not waiting.empty():
            arrival = asyncio.ensure_future(waiting.get())
            await asyncio.wait({arrival, *pending}, return_when=asyncio.FIRST_COMPLETED)
            for follower in [task for task in pending if task.done()]:
                pending.discard(follower)
                follower.result()
            if not arrival.done():
                arrival.cancel()
                continue
            topic, event = arrival.result()
            position = positions.move(topic, event.id) if event.id else None
            yield ServerSentEvent(event=f"{topic}.{event.event}", id=position, data=event.data)
    finally:
        unfinished: list[asyncio.Future[Any]] = [*followers, *([arrival] if arrival else [])]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


async def _follow(
    topic: str, source: AsyncIterator[ServerSentEvent], waiting: asyncio.Queue[tuple[str, ServerSentEvent]]
) -> None:
    async for event in source:
        await waiting.put((topic, event))
