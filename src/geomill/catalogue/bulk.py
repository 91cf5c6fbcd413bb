"""Many catalogue entries at once: one COPY and one statement for each batch, however many items it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg

from geomill.sql import queries
from geomill.store import schema_objects
from geomill.store.pool import Connection

BATCH = 10_000
Item = Mapping[str, Any]


async def put_items(
    conn: Connection,
    items: Iterable[Item],
    collections: Mapping[str, Mapping[str, Any]],
    *,
    platform_id: str | None = None,
    batch: int = BATCH,
) -> int:
    """Puts items in, new or in place of what they were, and makes their collections. Each batch is all there or not."""
    source, count = iter(items), 0
    documents = json.dumps(collections, allow_nan=False)
    while part := list(islice(source, batch)):
        async with conn.transaction():
            await _open_incoming(conn)
            async with conn.cursor() as cursor, cursor.copy(queries("catalogue").copy_incoming) as copy:
                for item in part:
                    await copy.write_row((json.dumps(item, allow_nan=False), platform_id))
            row = await (await conn.execute(queries("catalogue").put_incoming, {"collections": documents})).fetchone()
            assert row is not None
            count += int(row["count"])
    return count


@dataclass(frozen=True, slots=True)
class CatalogueCheck:
    """How the catalogue stands to the assets that it follows. All but the first should be nothing."""

    wanted: int
    missing: int
    strays: int
    """Of no asset: written by hand."""
    different: int
    pending: int
    """Known to be behind; an orchestrator tries again."""
    miscounted: int
    """Collections."""
    damage: tuple[str, ...] = ()
    """Tables, functions, triggers and indexes of the database that are missing or were changed."""

    @property
    def sound(self) -> bool:
        wrong = (self.missing, self.strays, self.different, self.pending, self.miscounted, self.damage)
        return not any(wrong)


async def check(conn: Connection) -> CatalogueCheck:
    damage = tuple(await schema_objects.losses(conn))
    try:
        row = await (await conn.execute(queries("catalogue").check)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction):
        if not damage:
            raise
        return CatalogueCheck(0, 0, 0, 0, 0, 0, damage)
    assert row is not None
    return CatalogueCheck(**row, damage=damage)


async def rebuild(conn: Connection) -> int:
    """Makes the catalogue anew from the assets, in one transaction: for a database that had assets before it had a
    catalogue, or one in which somebody wrote by hand. How many items there are."""
    async with conn.transaction():
        await conn.execute(queries("catalogue").hold_assets)
        await _open_incoming(conn)
        await conn.execute(queries("catalogue").incoming_assets)
        await conn.execute(queries("catalogue").drop_strays)
        row = await (await conn.execute(queries("catalogue").put_assets)).fetchone()
        await conn.execute(queries("catalogue").forget_pending)
        assert row is not None
        return int(row["count"])


async def _open_incoming(conn: Connection) -> None:
    await conn.execute(queries("catalogue").incoming)
    await conn.execute(queries("catalogue").incoming_plain)
