"""Nodes and fan-out items in the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, LiteralString

from geomill.domain.engine.node import NodeState
from geomill.domain.engine.reopening import Reopened
from geomill.domain.ids import task_id
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


async def item_outcomes(
    conn: Connection, job_id: str, node_id: str, fresh: Sequence[str], characters: int
) -> dict[int, dict[str, Any]]:
    """By item: how it ended, with what output or error. `fresh` are the tasks of those that complete in this round and
    have no row yet. Raises `TooMuch` beyond so many characters of outputs, before they are all in memory."""
    reader = _Reader(conn, characters)
    found: dict[int, dict[str, Any]] = {}
    after, full = -1, True
    while full:
        rows = reader.rows
        parameters = {"job_id": job_id, "node_id": node_id, "after": after, "rows": rows}
        page = await reader.read(queries("nodes").item_outcomes, parameters)
        found |= page
        after, full = max(page, default=after), len(page) == rows
    while fresh:
        some, fresh = fresh[: reader.rows], fresh[reader.rows :]
        found |= await reader.read(queries("nodes").results, {"task_ids": some})
    return found


class _Reader:
    """A page is as long as the ones before it let expect."""

    def __init__(self, conn: Connection, characters: int) -> None:
        self._conn = conn
        self._most = characters
        self._characters = 0
        self._items = 0
        self.rows = FIRST_ROWS

    async def read(self, query: LiteralString, parameters: dict[str, Any]) -> dict[int, dict[str, Any]]:
        page = await (await self._conn.execute(query, parameters)).fetchall()
        self._items += len(page)
        self._characters += sum(len(row["output"] or "") for row in page)
        if self._characters > self._most:
            raise TooMuch
        self.rows = max(FIRST_ROWS, min(MOST_ROWS, PAGE_CHARACTERS * self._items // max(self._characters, 1)))
        for row in page:
            row["output"] = json.loads(row["output"]) if row["output"] else None
        return {row["index"]: row for row in page}


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
