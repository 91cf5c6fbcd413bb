"""Nodes and fan-out items in the database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, LiteralString

from geomill.domain.ids import task_id
from geomill.domain.node import NodeState
from geomill.domain.reopening import Reopened
from geomill.sql import queries
from geomill.store.pool import Connection

FIRST_ROWS = 64
MOST_ROWS = 50_000
PAGE_ROWS = 1_000
PAGE_CHARACTERS = 4_000_000
"""Of outputs, beside the last one: so a page fits into memory and into a frame to a child, whatever the outputs are."""


class TooMuch(Exception):  # noqa: N818  what happened, to one caller
    """More characters of outputs than the caller can take."""


async def of_job(conn: Connection, job_id: str) -> list[NodeState]:
    cursor = await conn.execute(queries("nodes").of_job, {"job_id": job_id})
    return [NodeState.from_row(row) for row in await cursor.fetchall()]


async def item_outputs(conn: Connection, job_id: str, node_id: str, fresh: Sequence[int], characters: int) -> list[Any]:
    """Of the items that completed, in their order. `fresh` completed in this transaction and are not written yet."""
    parameters = {"job_id": job_id, "node_id": node_id, "fresh": list(fresh)}
    return [row["output"] async for row in _pages(conn, queries("nodes").item_outputs, parameters, characters)]


async def item_outcomes(
    conn: Connection, job_id: str, node_id: str, fresh: Sequence[int], characters: int
) -> dict[int, dict[str, Any]]:
    """By item: how it ended, with what output or error. `fresh` are as above."""
    parameters = {"job_id": job_id, "node_id": node_id, "fresh": list(fresh)}
    return {row["index"]: row async for row in _pages(conn, queries("nodes").item_outcomes, parameters, characters)}


async def _pages(
    conn: Connection, query: LiteralString, parameters: dict[str, Any], characters: int
) -> AsyncIterator[dict[str, Any]]:
    """Raises `TooMuch` beyond so many characters of outputs, before they are all in memory: a page is as long as the
    ones before it let expect."""
    after, seen, read, rows = -1, 0, 0, FIRST_ROWS
    while True:
        page = await (await conn.execute(query, parameters | {"after": after, "rows": rows})).fetchall()
        read += sum(len(row["output"] or "") for row in page)
        if read > characters:
            raise TooMuch
        for row in page:
            row["output"] = json.loads(row["output"]) if row["output"] else None
            yield row
        if len(page) < rows:
            return
        after, seen = page[-1]["index"], seen + len(page)
        rows = max(FIRST_ROWS, min(MOST_ROWS, PAGE_CHARACTERS * seen // max(read, 1)))


async def outcomes_page(conn: Connection, job_id: str, node_id: str, after: int, having: str) -> str:
    """JSON for whoever reads how the items of a fan-out ended, once all have: `[[index, output, error], …]`."""
    parameters = {
        "job_id": job_id,
        "node_id": node_id,
        "after": after,
        "having": having,
        "rows": PAGE_ROWS,
        "characters": PAGE_CHARACTERS,
    }
    # planned each time: a session for handlers would keep the plan that was right for an empty table
    row = await (await conn.execute(queries("nodes").outcomes_page, parameters, prepare=False)).fetchone()
    assert row is not None
    return str(row["page"])


async def reopen(conn: Connection, job_id: str, again: Sequence[Reopened]) -> None:
    await conn.execute(
        queries("nodes").reopen,
        {
            "job_id": job_id,
            "node_ids": [one.node_id for one in again],
            "item_indexes": [one.item_index for one in again],
            "statuses": [one.status.value for one in again],
            "attempts": [one.attempt for one in again],
            "task_ids": [task_id(job_id, one.node_id, one.item_index, one.attempt) for one in again],
        },
    )
