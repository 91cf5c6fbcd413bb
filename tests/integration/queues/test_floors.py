"""Dead entries that cannot be vacuumed: a lease that begins at its floor does not read them."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from geomill.queues import postgres as queue
from geomill.queues.floors import Floors
from geomill.queues.postgres import Lessee, lease_lines_statement
from geomill.queues.turns import TenantLine
from geomill.store.pool import Pool

LINE = TenantLine("q", 0, "")
DEAD = 20_000


@pytest.fixture
def horizon(database: str) -> Any:
    """A session outside that has left a transaction open."""
    with psycopg.connect(database) as outside:
        outside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        outside.execute("SELECT 1")
        yield outside


async def dead_entries(conn: Any) -> None:
    await conn.execute(
        "INSERT INTO dagapp.dag_queue (queue_name, message_id, body)"
        " SELECT 'q', n, '{}' FROM generate_series(1, %s) AS n",
        [DEAD],
    )
    await conn.execute("DELETE FROM dagapp.dag_queue")
    await conn.execute("INSERT INTO dagapp.dag_queue (queue_name, message_id, body) VALUES ('q', 'live', '{}')")


async def buffers(conn: Any, floor: int) -> int:
    """Pages that a lease of the line's next message reads."""
    parameters = {
        "queue_names": ["q"], "priorities": [0], "tenants": [""], "shares": [1], "floors": [floor],
        "leased_by": "w", "lease_seconds": 60.0, "relaxed": False,
    }  # fmt: skip
    async with conn.transaction(force_rollback=True):
        statement = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {lease_lines_statement()}"
        row = await (await conn.execute(statement, parameters)).fetchone()
        plan = row["QUERY PLAN"]
        plan = json.loads(plan) if isinstance(plan, str) else plan
        return int(plan[0]["Plan"]["Shared Hit Blocks"]) + int(plan[0]["Plan"]["Shared Read Blocks"])


async def test_a_floor_spares_the_dead_entries(pool: Pool, horizon: Any) -> None:
    async with pool.connection() as conn:
        await dead_entries(conn)
        row = await (await conn.execute("SELECT sequence FROM dagapp.dag_queue")).fetchone()
        assert row is not None
        assert await buffers(conn, 0) > DEAD / 100, "the test has no dead entries"
        assert await buffers(conn, row["sequence"]) < 40


async def test_a_dear_queue_is_read_from_its_floors_and_never_called_empty(pool: Pool) -> None:
    """A message that lies before the floor comes with the next look from the heads."""
    now = [100.0]
    floors = Floors(lambda: now[0])
    async with pool.connection() as conn:

        async def lease() -> queue.Leased:
            return await queue.lease(conn, {"q": 10}, "w", floors=floors)

        async def send(message_id: str, sequence: int) -> None:
            await conn.execute(
                "INSERT INTO dagapp.dag_queue (sequence, queue_name, message_id, body) OVERRIDING SYSTEM VALUE"
                " VALUES (%s, 'q', %s, '{}')",
                [sequence, message_id],
            )

        for number in range(3):
            await send(f"early{number}", 1000 + number)
            now[0] += 1
            assert len((await lease()).deliveries) == 1
        assert 0 < floors.lines(["q"])[LINE] <= 1002
        for seconds in (0.0001, 1.0, 1.0, 1.0):
            floors.looked(["q"], seconds, 0)
        assert floors.bounded("q")
        await send("late", 5)
        await send("next", 2000)
        leased = await lease()
        assert [delivery.message_id for delivery in leased.deliveries] == ["next"]
        assert leased.empty == set()
        now[0] += 60
        leased = await lease()
        assert [delivery.message_id for delivery in leased.deliveries] == ["late"]
        assert leased.empty == {"q"}


async def test_a_line_leased_from_its_floor_gives_its_share(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body)"
            " SELECT 'q', n, '{}' FROM generate_series(1, 9) AS n"
        )
        rows = await (await conn.execute("SELECT sequence FROM dagapp.dag_queue ORDER BY sequence")).fetchall()
        leased = await queue.lease_lines(conn, Lessee("w"), {LINE: 3}, {LINE: rows[4]["sequence"]})
    assert sorted(delivery.message_id for delivery in leased) == ["5", "6", "7"]
