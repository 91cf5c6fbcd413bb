"""Several streams in one: nothing is lost, an end leaves the others, an error ends all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi.sse import ServerSentEvent

from geomill.api.merged_streams import Positions, merged


async def source(*numbers: int, fails: bool = False, stays: bool = False) -> AsyncIterator[ServerSentEvent]:
    for number in numbers:
        await asyncio.sleep(0)
        yield ServerSentEvent(event="job", id=str(number), data=number)
    if fails:
        raise ValueError("broken")
    if stays:
        await asyncio.Event().wait()


async def test_events_have_the_name_of_their_topic_and_one_position() -> None:
    events = [event async for event in merged({"a": source(1, 2), "b": source(7)}, Positions("b=3"))]
    assert sorted((event.event or "", event.data) for event in events) == [("a.job", 1), ("a.job", 2), ("b.job", 7)]
    final = Positions(events[-1].id or "")
    assert (final.number("a"), final.number("b")) == (2, 7)


async def test_many_events_of_one_keep_their_order() -> None:
    events = [event.data async for event in merged({"a": source(*range(1000))}, Positions())]
    assert events == list(range(1000))


async def test_an_end_leaves_the_others() -> None:
    stream = merged({"ends": source(1), "stays": source(5, 6, stays=True)}, Positions())
    assert sorted([(await anext(stream)).data for _ in range(3)]) == [1, 5, 6]
    await stream.aclose()  # type: ignore[attr-defined]


async def test_an_error_of_one_ends_all_and_leaves_no_task() -> None:
    before = len(asyncio.all_tasks())
    with pytest.raises(ValueError, match="broken"):
        async for _ in merged({"fails": source(fails=True), "stays": source(stays=True)}, Positions()):
            pass
    assert len(asyncio.all_tasks()) == before


@pytest.mark.parametrize("text", ["", "jobs", "jobs=x", "jobs=-1", "jobs=" + "9" * 30, "=&=", "jobs=٣"])
def test_an_odd_position_is_none(text: str) -> None:
    assert Positions(text).number("jobs") is None
