from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.worker.children import frames

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def sent(data: bytes) -> list[frames.Frame | None]:
    """Return the frames that a child receives, until the end."""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        sender.sendall(data)
        sender.close()
        received = []
        while frame := frames.receive(receiver):
            received.append(frame)
        return [*received, None]


@given(st.lists(values, max_size=3))
@pytest.mark.slow
def test_what_is_sent_arrives(data: list[Any]) -> None:
    text = b"".join(frames.encode("x", value=value) for value in data)
    assert sent(text) == [*({"kind": "x", "value": value} for value in data), None]


async def test_half_a_frame_is_the_end() -> None:
    whole = frames.encode("x", value="y" * 100)
    assert sent(whole + whole[:50]) == [{"kind": "x", "value": "y" * 100}, None]
    reader = asyncio.StreamReader()
    reader.feed_data(whole + whole[:50])
    reader.feed_eof()
    assert await frames.read(reader) is not None
    assert await frames.read(reader) is None


async def test_a_large_frame_passes_and_an_endless_one_does_not() -> None:
    reader = asyncio.StreamReader(limit=1024)
    reader.feed_data(frames.encode("x", value="y" * 1_000_000))
    assert len((await frames.read(reader) or {})["value"]) == 1_000_000
    reader.feed_data(b"\xff\xff\xff\xff")
    with pytest.raises(ValueError, match="a frame of"):
        await frames.read(reader)


@pytest.mark.parametrize("body", [b"x", b"[]", b"{}"])
def test_what_is_no_frame(body: bytes) -> None:
    with pytest.raises(ValueError):
        frames.decode(body)
