"""Live events of a job."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from httpx import AsyncClient

from geomill.api.streams import Streams
from geomill.store.pool import Pool
from tests.integration.api.conftest import SLOW
from tests.integration.api.test_jobs import submit, until


def parse(text: str) -> list[tuple[str, int | None, Any]]:
    """Name, id and data of each event."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            number = int(fields["id"]) if "id" in fields else None
            events.append((fields["event"], number, json.loads(fields["data"])))
    return events


async def test_events_progress_and_the_end(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    answer = await busy.get(accepted["stream_url"])
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = parse(answer.text)
    happened = [data["event_type"] for name, _, data in events if name == "event"]
    assert happened[0] == "job_created"
    assert happened[-1] == "job_completed"
    name, _, outcome = events[-1]
    assert (name, outcome["status"]) == ("end", "completed")
    assert outcome["result"] == {"message": "Hello, World!"}
    assert [data["status"] for name, _, data in events if name == "progress"][-1] == "completed"


async def test_who_comes_back_misses_nothing_and_sees_nothing_twice(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    whole = [number for _, number, _ in parse((await busy.get(accepted["stream_url"])).text) if number]
    for place, number in enumerate(whole):
        answer = await busy.get(accepted["stream_url"], headers={"Last-Event-ID": str(number)})
        assert [number for _, number, _ in parse(answer.text) if number] == whole[place + 1 :]


async def test_many_listeners_share_the_looks_and_hold_no_connection(
    make_platform: Any, database: str, pool: Pool
) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("slow", {"seconds": 1.6})
    streams = Streams(pool, "dag-jobs")

    async def listen() -> list[Any]:
        return [event async for event in streams.follow(job_id, 0)]

    listeners = [asyncio.create_task(listen()) for _ in range(20)]
    await asyncio.sleep(0.3)
    assert len(streams._watches) == 1
    followed = await asyncio.gather(*listeners)
    assert all(events[-1].event == "end" for events in followed)
    assert all(3 <= sum(event.event == "progress" for event in events) <= 8 for events in followed)
    assert streams._watches == {}


async def test_a_queued_job_is_followed_until_it_is_claimed(make_platform: Any, make_client: Any) -> None:
    platform = make_platform()
    client = await make_client(platform)
    accepted = await submit(client)
    following = asyncio.create_task(client.get(accepted["stream_url"]))
    await asyncio.sleep(0.2)
    platform.orchestrator()
    platform.worker()
    events = parse((await following).text)
    assert events[0][2]["status"] == "queued"
    assert events[-1][0] == "end"


async def test_a_job_that_vanishes_ends_its_stream(make_platform: Any, make_client: Any, pool: Pool) -> None:
    client = await make_client(make_platform())
    accepted = await submit(client)
    following = asyncio.create_task(client.get(accepted["stream_url"]))
    await asyncio.sleep(0.2)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM dagapp.dag_queue")
    assert parse((await following).text)[-1][2]["status"] == "gone"


async def test_closing_ends_streams(make_platform: Any, pool: Pool) -> None:
    platform = make_platform()
    job_id = await platform.submit("hello_world")
    streams = Streams(pool, "dag-jobs")
    following = asyncio.create_task(anext(streams.follow(job_id, 0)))
    await following
    streams.close()
    assert [event async for event in streams.follow(job_id, 0)] == []
