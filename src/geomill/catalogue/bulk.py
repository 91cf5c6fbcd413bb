"""Many catalogue items at once: items loaded in bulk, and the whole catalogue compared with the assets or rebuilt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import psycopg

from geomill.catalogue import pending
from geomill.catalogue.entries import Entry, InvalidEntry
from geomill.catalogue.writing import build_entry, shown_assets
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.sql import queries
from geomill.store import schema_objects
from geomill.store.pool import Connection

BATCH = 10_000
ASSETS = 200
Item = Mapping[str, Any]


async def put_items(
    conn: Connection,
    items: Iterable[Item],
    collections: Mapping[str, Mapping[str, Any]],
    *,
    platform_id: str | None = None,
    batch: int = BATCH,
) -> int:
    """Add or replace items, and create their collections. A batch is written whole or not at all."""
    source, count = iter(items), 0
    documents = to_json(collections)
    while part := list(islice(source, batch)):
        async with conn.transaction():
            await _open_incoming(conn)
            await _copy_incoming(conn, ((item, platform_id) for item in part))
            count += await _put_incoming(conn, documents)
    return count


@dataclass(frozen=True, slots=True)
class CatalogueCheck:
    """The catalogue compared with the assets that it follows. In a sound catalogue all counts but the first are 0."""

    expected: int
    missing: int
    strays: int
    """Items that follow from no asset: somebody wrote them by hand."""
    different: int
    pending: int
    """Assets whose entry an orchestrator has still to write."""
    miscounted: int
    """Collections whose counts are wrong."""
    damage: tuple[str, ...] = ()
    """Tables, functions, triggers and indexes of the database that are missing or were changed."""

    @property
    def sound(self) -> bool:
        wrong = (self.missing, self.strays, self.different, self.pending, self.miscounted, self.damage)
        return not any(wrong)


async def check(conn: Connection) -> CatalogueCheck:
    damage = tuple(await schema_objects.losses(conn))
    try:
        async with conn.transaction():
            await _open_incoming(conn)
            async for entries in _entries(conn, refused={}):
                await _copy_incoming(conn, _items(entries))
            row = await (await conn.execute(queries("catalogue").check)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction):
        if not damage:
            raise
        return CatalogueCheck(0, 0, 0, 0, 0, 0, damage)
    assert row is not None
    return CatalogueCheck(**row, damage=damage)


async def rebuild(conn: Connection) -> int:
    """Write the whole catalogue again from the assets, in one transaction. It serves a database that had assets before
    it had a catalogue, or one in which somebody wrote by hand. Returns how many items there are."""
    refused: dict[str, str] = {}
    collections: dict[str, Mapping[str, Any]] = {}
    async with conn.transaction():
        await conn.execute(queries("catalogue").hold_assets)
        await _open_incoming(conn)
        async for entries in _entries(conn, refused):
            for entry in entries:
                collections.setdefault(entry.collection_id, entry.collection)
            await _copy_incoming(conn, _items(entries))
        await conn.execute(queries("catalogue").drop_strays)
        count = await _put_incoming(conn, to_json(collections))
        await conn.execute(queries("catalogue").forget_pending)
        for asset_id, reason in refused.items():
            await pending.postpone(conn, asset_id, reason)
    return count


async def _entries(conn: Connection, refused: dict[str, str]) -> AsyncIterator[list[Entry]]:
    """The entries of all assets, some at a time, the oldest asset first. Assets whose entry is not valid are added to
    `refused` with the reason."""
    last: tuple[datetime | None, str] = (None, "")
    while True:
        parameters = {"created_at": last[0], "asset_id": last[1], "limit": ASSETS}
        rows = await (await conn.execute(queries("catalogue").page_of_assets, parameters)).fetchall()
        if not rows:
            return
        last = rows[-1]["created_at"], rows[-1]["asset_id"]
        assets = {asset.asset_id: asset for asset in await shown_assets(conn, [row["asset_id"] for row in rows])}
        entries = []
        for row in rows:
            try:
                entry = build_entry(assets[row["asset_id"]])
                to_json(entry.items)
            except (InvalidEntry, NotJson) as error:
                refused[row["asset_id"]] = str(error)
            else:
                entries.append(entry)
        yield [entry for entry in entries if entry.items]


def _items(entries: Iterable[Entry]) -> Iterable[tuple[Item, str]]:
    return ((item, entry.platform_id) for entry in entries for item in entry.items)


async def _open_incoming(conn: Connection) -> None:
    await conn.execute(queries("catalogue").incoming)
    await conn.execute(queries("catalogue").incoming_plain)


async def _copy_incoming(conn: Connection, items: Iterable[tuple[Item, str | None]]) -> None:
    async with conn.cursor() as cursor, cursor.copy(queries("catalogue").copy_incoming) as copy:
        for item, platform_id in items:
            await copy.write_row((to_json(item), platform_id))


async def _put_incoming(conn: Connection, documents: str) -> int:
    row = await (await conn.execute(queries("catalogue").put_incoming, {"collections": documents})).fetchone()
    assert row is not None
    return int(row["count"])
