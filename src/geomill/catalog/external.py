"""What is outside, beside the files: the catalogue entry, the row that the external server goes by, and the table.

All of it changes in one transaction of the external database, so nothing is half outside, and a run that is repeated
after a crash finds everything or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geomill.catalog.tables import copy_table, drop_table
from geomill.errors import NotFoundError
from geomill.sql import queries
from geomill.store.pool import Connection, Pool


@dataclass(frozen=True)
class ExternalDatabase:
    """`ctx.external` of handlers."""

    inside: Pool
    outside: Pool

    async def publish(self, asset_id: str, revision: int, files: Sequence[dict[str, Any]]) -> dict[str, Any]:
        async with self.inside.connection() as source, self.outside.connection() as target, target.transaction():
            entry = await _entry(source, asset_id, revision)
            await target.execute(queries("catalog").serialise_external, {"asset_id": asset_id})
            before = await _remove_entry(target, asset_id)
            tables = tables_of(entry)
            rows = sum([await copy_table(source, target, name) for name in tables]) if tables else None
            for name in set(tables_of(before or {})) - set(tables):
                await drop_table(target, name)
            await _put_entry(target, asset_id, revision, entry, files)
        return {"stac_item": entry["item"] is not None, "table_name": entry["table_name"], "rows": rows}

    async def withdraw(self, asset_id: str) -> bool:
        async with self.outside.connection() as target, target.transaction():
            await target.execute(queries("catalog").serialise_external, {"asset_id": asset_id})
            before = await _remove_entry(target, asset_id)
            for name in tables_of(before or {}):
                await drop_table(target, name)
        return before is not None


def tables_of(entry: Mapping[str, Any]) -> list[str]:
    """The main one first. A layer that was split by its kinds of geometry has more."""
    if not entry.get("table_name"):
        return []
    others = [one["table_name"] for one in entry["outputs"].get("tables") or ()]
    return list(dict.fromkeys([entry["table_name"], *others]))


async def _entry(conn: Connection, asset_id: str, revision: int) -> dict[str, Any]:
    found = await (
        await conn.execute(queries("catalog").exported, {"asset_id": asset_id, "revision": revision})
    ).fetchone()
    entry: dict[str, Any] | None = found["entry"] if found else None
    if entry is None or entry["platform_id"] is None or entry["outputs"] is None:
        raise NotFoundError(f"revision {revision} of {asset_id} has no outputs that could be exported")
    return entry


async def _remove_entry(conn: Connection, asset_id: str) -> dict[str, Any] | None:
    before = await (await conn.execute(queries("catalog").external_table, {"asset_id": asset_id})).fetchone()
    if before is None:
        return None
    if before["item"]:
        names = {"collection": before["collection"], "item": before["item"]}
        await conn.execute(queries("catalog").remove_external_item, names)
        await conn.execute(queries("catalog").put_external_side_items, {**names, "items": "[]"})
    await conn.execute(queries("catalog").remove_external, {"asset_id": asset_id})
    return before


async def _put_entry(
    conn: Connection, asset_id: str, revision: int, entry: dict[str, Any], files: Sequence[dict[str, Any]]
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
    await conn.execute(queries("catalog").put_external, parameters)
    if entry["item"]:
        await conn.execute(
            queries("catalog").put_external_item,
            {
                "item": json.dumps(entry["item"]),
                "collection": json.dumps(entry["collection"]),
                "platform_id": entry["platform_id"],
            },
        )
        await conn.execute(
            queries("catalog").put_external_side_items,
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


def within_revision(path: str) -> str:
    return re.sub(r"^.*?/_r[0-9]+/", "", path)
