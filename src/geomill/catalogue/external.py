"""What is outside, beside the files: the catalogue entry, the row that the external server goes by, and the tables.

Tables are copied first, under names of their revision that no entry leads to. The entry then appears, or goes, in one
short transaction, and whoever publishes holds the asset meanwhile: a decision about the asset waits for it, or finds
the entry and takes it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geomill.catalogue.tables import copy_table
from geomill.domain.assets.inventory import within_revision
from geomill.errors import NotFoundError
from geomill.sdk.orders import AssetOrder
from geomill.sql import queries
from geomill.store.orders import drop_tables
from geomill.store.pool import Connection, Pool


@dataclass(frozen=True)
class ExternalDatabase:
    """`ctx.external` of handlers."""

    inside: Pool
    outside: Pool

    async def prepare(self, order: AssetOrder) -> dict[str, Any]:
        """The entry of the order's revision, whose tables are outside now."""
        async with self.inside.connection() as source, self.outside.connection() as target:
            entry = await _entry(source, order.asset_id, order.revision)
            rows = [await _copied(source, target, name) for name in tables_of(entry)]
        return {**entry, "rows": sum(rows) if rows else None}

    async def publish(self, order: AssetOrder, entry: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> None:
        """In place of an entry that is there. Tables of earlier revisions go with it."""
        async with self.outside.connection() as target:
            async with target.transaction():
                await _hide(target, order.asset_id)
                await _put_entry(target, order.asset_id, order.revision, entry, files)
            async with target.transaction():
                await drop_tables(target, order, but=tables_of(entry))

    async def withdraw(self, order: AssetOrder) -> bool:
        removed = await hide(self.outside, order.asset_id)
        async with self.outside.connection() as target, target.transaction():
            await drop_tables(target, order)
        return removed


async def hide(outside: Pool, asset_id: str) -> bool:
    """Take the entry of an asset out, so that nothing of it is served outside any more. Whether one was there."""
    async with outside.connection() as target:
        return await _hide(target, asset_id)


async def _hide(conn: Connection, asset_id: str) -> bool:
    """Nobody else changes what is outside of the asset until the transaction ends."""
    row = await (await conn.execute(queries("catalogue").hide_external, {"asset_id": asset_id})).fetchone()
    return bool(row and row["hidden"])


async def _copied(source: Connection, target: Connection, name: str) -> int:
    async with target.transaction():
        return await copy_table(source, target, name)


def tables_of(entry: Mapping[str, Any]) -> list[str]:
    """The main one first. A layer that was split by its kinds of geometry has more."""
    if not entry.get("table_name"):
        return []
    others = [one["table_name"] for one in entry["outputs"].get("tables") or ()]
    return list(dict.fromkeys([entry["table_name"], *others]))


async def _entry(conn: Connection, asset_id: str, revision: int) -> dict[str, Any]:
    found = await (
        await conn.execute(queries("catalogue").exported, {"asset_id": asset_id, "revision": revision})
    ).fetchone()
    entry: dict[str, Any] | None = found["entry"] if found else None
    if entry is None or entry["platform_id"] is None or entry["outputs"] is None:
        raise NotFoundError(f"revision {revision} of {asset_id} has no outputs that could be exported")
    return entry


async def _put_entry(
    conn: Connection, asset_id: str, revision: int, entry: Mapping[str, Any], files: Sequence[dict[str, Any]]
) -> None:
    parameters = {
        "asset_id": asset_id,
        "revision": revision,
        "platform_id": entry["platform_id"],
        "title": entry["title"],
        "data_type": entry["data_type"],
        "blob_path": blob_path_outside(entry["blob_path"], files),
        "table_name": entry["table_name"],
        "outputs": json.dumps({**scenes_outside(entry["outputs"], files), "files": list(files)}),
    }
    await conn.execute(queries("catalogue").put_external, parameters)
    if entry["item"]:
        await conn.execute(
            queries("catalogue").put_external_item,
            {
                "item": json.dumps(entry["item"]),
                "collection": json.dumps(entry["collection"]),
                "platform_id": entry["platform_id"],
            },
        )
        await conn.execute(
            queries("catalogue").put_external_side_items,
            {
                "collection": entry["item"]["collection"],
                "item": entry["item"]["id"],
                "items": json.dumps(entry["side_items"]),
            },
        )


def scenes_outside(outputs: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The outputs; those of a series of rasters with the places where each of them lies outside."""
    if not isinstance(outputs.get("scenes"), dict):
        return dict(outputs)
    places = {within_revision(file["path"]): f"{file['container']}/{file['path']}" for file in files}
    scenes = {
        name: {**scene, "blob_path": places.get(within_revision(scene["blob_path"]))}
        for name, scene in outputs["scenes"].items()
    }
    return {**outputs, "scenes": {name: scene for name, scene in scenes.items() if scene["blob_path"]}}


def blob_path_outside(inside: str | None, files: Sequence[dict[str, Any]]) -> str | None:
    """Where the main file lies outside: the same place within the folder of its revision."""
    if inside is None:
        return None
    name = within_revision(inside)
    return next(
        (f"{file['container']}/{file['path']}" for file in files if within_revision(file["path"]) == name), None
    )
