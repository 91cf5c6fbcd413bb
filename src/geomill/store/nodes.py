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
"""The most characters of outputs on a page, without the last one. So a page fits into memory and into a frame."""


class TooMuch(Exception):  # noqa: N818  what happened, to one caller
    """More characters of outputs than the caller can take."""


async def of_job(conn: Connection, job_id: str) -> list[NodeState]:
    cursor = await conn.execute(queries("nodes").of_job, {"job_id": job_id})
    return [NodeState.from_row(row) for row in await cursor.fetchall()]


async def item_outcomes(
    conn: Connection, job_id: str, node_id: str, fresh: Sequence[str], characters: int
) -> dict[int, dict[str, Any]]:
    """Return how each item ended, with its output or error. `fresh` are the tasks of items that complete in this round
    and have no row yet. Raises `TooMuch` beyond `characters` of outputs, before all of them are in memory."""
    reader = _Reader(conn, characters)
    outcomes: dict[int, dict[str, Any]] = {}
    after, full = -1, True
    while full:
        rows = reader.rows
        parameters = {"job_id": job_id, "node_id": node_id, "after": after, "rows": rows}
        page = await reader.read(queries("nodes").item_outcomes, parameters)
        outcomes |= page
        after, full = max(page, default=after), len(page) == rows
    while fresh:
        some, fresh = fresh[: reader.rows], fresh[reader.rows :]
        outcomes |= await reader.read(queries("nodes").results, {"task_ids": some})
    return outcomes


class _Reader:
    """Reads pages, each with as many rows as the size of the outputs before suggests."""

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
    """Return how the items of an ended fan-out ended, as JSON: `[[index, output, error], …]`."""
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


async def reopen(conn: Connection, job_id: str, reopened: Sequence[Reopened]) -> None:
    await conn.execute(queries("nodes").reopen, _reopened(job_id, reopened))


async def begin_anew(conn: Connection, job_id: str, begun_again: Sequence[Reopened]) -> None:
    """Replace the rows of these nodes by new ones. The items of their fan-outs go, with their results."""
    node_ids = [node.node_id for node in begun_again]
    await conn.execute(queries("nodes").discard, {"job_id": job_id, "node_ids": node_ids})
    await conn.execute(queries("nodes").begin_anew, _reopened(job_id, begun_again))


def _reopened(job_id: str, reopened: Sequence[Reopened]) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "node_ids": [node.node_id for node in reopened],
        "item_indexes": [node.item_index for node in reopened],
        "statuses": [node.status.value for node in reopened],
        "attempts": [node.attempt for node in reopened],
        "task_ids": [task_id(job_id, node.node_id, node.item_index, node.attempt) for node in reopened],
    }
