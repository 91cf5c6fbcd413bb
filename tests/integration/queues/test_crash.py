"""A message that was handed in is there to stay, although those who were called heard of it before the disk had it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.sql import queries
from geomill.store.migrate import migrate
from geomill.store.pool import CONNECTION
from tests.integration.embedded.conftest import MakeCluster, data, make, open_folder

__all__ = ["data", "make", "open_folder"]

MESSAGE = Outgoing("dag-jobs", "a", "{}")


async def _connect(url: str) -> psycopg.AsyncConnection[dict[str, object]]:
    return await psycopg.AsyncConnection.connect(url, **CONNECTION)


@pytest.mark.parametrize("again", [False, True], ids=["first", "a second time, by somebody who adds nothing"])
async def test_what_was_handed_in_outlives_a_crash_of_the_server(make: MakeCluster, data: Path, again: bool) -> None:
    cluster = make(data, wal_writer_delay="10s")  # else it would be written soon by itself
    cluster.start()
    async with await _connect(cluster.url()) as conn, await _connect(cluster.url()) as other:
        await migrate(conn)
        await other.execute("CHECKPOINT")
        if again:
            message = {"queue_name": "dag-jobs", "message_id": "a", "body": "{}", "priority": 0, "tenant": ""}
            await other.execute(queries("queue").hand_in, message | {"called": "x"})  # and was cut off before the flush
        await queue.hand_in(conn, MESSAGE, "x")
        cluster.stop("immediate")
    cluster.start()
    async with await _connect(cluster.url()) as conn:
        assert [waiting.message_id for waiting in await queue.look(conn, "dag-jobs", 5)] == ["a"]
