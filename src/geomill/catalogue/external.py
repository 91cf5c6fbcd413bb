"""The external zone's database: the catalogue entry of an exported asset, its row in `external.assets`, its tables.

Tables are copied first, under names of their revision that no entry leads to. The entry then appears, or disappears,
in one short transaction. The caller holds the asset meanwhile, so a decision about the asset waits for the export, or
finds the entry and removes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from geomill.catalogue.entries import InvalidEntry, ShownAsset, collection_document, main_item, side_items
from geomill.catalogue.styling import renders_of, style_links
from geomill.catalogue.tables import copy_table
from geomill.catalogue.writing import write_items
from geomill.domain.assets.inventory import within_revision
from geomill.domain.jsonvalue import to_json
from geomill.errors import AssetState, NotFoundError
from geomill.sdk.orders import AssetOrder
from geomill.sql import queries
from geomill.store.orders import drop_tables
from geomill.store.pool import Connection, Pool

STAC_OUTPUTS = ("stac_item", "stac_items", "stac_collection")


@dataclass(frozen=True)
class ExternalDatabase:
    """`ctx.external` of handlers."""

    inside: Pool
    outside: Pool

    async def prepare(self, order: AssetOrder) -> dict[str, Any]:
        """Copy the tables of the order's revision to the external database. Returns the entry of the revision."""
        async with self.inside.connection() as source, self.outside.connection() as target:
            entry = await _entry(source, order.asset_id, order.revision)
            rows = [await _copied(source, target, name) for name in tables_of(entry)]
        return {**entry, "rows": sum(rows) if rows else None}

    async def publish(self, order: AssetOrder, entry: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> None:
        """Replace the entry of the asset, and drop the tables of its other revisions."""
        async with self.outside.connection() as target:
            async with target.transaction():
                await _hide(target, order.asset_id)
                await _put_entry(target, order.asset_id, order.revision, entry, files)
                # the styles as they are now, under the lock: somebody may have changed them since
                await _style(target, replace(entry["asset"], own_styles=order.own_styles))
            async with target.transaction():
                await drop_tables(target, order, but=tables_of(entry))

    async def withdraw(self, order: AssetOrder) -> bool:
        """Remove the entry and the tables of the asset. Returns whether there was an entry."""
        removed = await hide(self.outside, order.asset_id)
        async with self.outside.connection() as target, target.transaction():
            await drop_tables(target, order)
        return removed


async def hide(outside: Pool, asset_id: str) -> bool:
    """Remove the entry of an asset, so that nothing of it is served outside any more. Returns whether there was one."""
    async with outside.connection() as target:
        return await _hide(target, asset_id)


async def _hide(conn: Connection, asset_id: str) -> bool:
    """As `hide`. Nobody else changes the asset outside until the transaction ends."""
    row = await (await conn.execute(queries("catalogue").hide_external, {"asset_id": asset_id})).fetchone()
    return bool(row and row["hidden"])


async def restyle(outside: Pool, asset: ShownAsset) -> bool:
    """Replace the styles of an exported asset. Returns whether it is there."""
    async with outside.connection() as target:
        return await _style(target, asset)


async def _style(conn: Connection, asset: ShownAsset) -> bool:
    item = (asset.outputs or {}).get("stac_item")
    workflow_renders = item["properties"].get("renders") if isinstance(item, dict) else None
    renders = renders_of(workflow_renders, asset.styles)
    parameters = {
        "asset_id": asset.asset_id,
        "styles": asset.styles.model_dump_json(exclude_none=True),
        "renders": to_json(renders) if renders else None,
        "links": to_json(style_links(asset.asset_id, asset.styles)),
    }
    row = await (await conn.execute(queries("catalogue").style_external, parameters)).fetchone()
    return bool(row and row["styled"])


async def _copied(source: Connection, target: Connection, name: str) -> int:
    async with target.transaction():
        return await copy_table(source, target, name)


def tables_of(entry: Mapping[str, Any]) -> list[str]:
    """The tables of an entry, the main one first. A layer that was split by its kinds of geometry has several."""
    if not entry.get("table_name"):
        return []
    others = [table["table_name"] for table in entry["outputs"].get("tables") or ()]
    return list(dict.fromkeys([entry["table_name"], *others]))


async def exported_asset(conn: Connection, asset_id: str, revision: int) -> ShownAsset:
    """Return an asset as the external zone shows it."""
    row = await (
        await conn.execute(queries("catalogue").exported, {"asset_id": asset_id, "revision": revision})
    ).fetchone()
    if row is None or row["outputs"] is None:
        raise NotFoundError(f"revision {revision} of {asset_id} has no outputs that could be exported")
    return ShownAsset(**row, revision=revision, public=True, approval="approved", clearance="public")


async def _entry(conn: Connection, asset_id: str, revision: int) -> dict[str, Any]:
    asset = await exported_asset(conn, asset_id, revision)
    try:
        return exported_entry(asset, revision)
    except InvalidEntry as error:
        raise AssetState(
            f"revision {revision} of {asset_id} cannot be exported: {error}", remedy="submit a corrected revision"
        ) from error


def exported_entry(asset: ShownAsset, revision: int) -> dict[str, Any]:
    """The description of an exported revision: its public item and side items, and the fields of `external.assets`."""
    outputs = asset.outputs or {}
    has_item = isinstance(outputs.get("stac_item"), dict)
    item = main_item(asset, revision) if has_item else None
    described = {name: value for name, value in outputs.items() if name not in STAC_OUTPUTS}
    return {
        "platform_id": asset.platform_id,
        "title": (item["properties"].get("title") if item else None) or asset.item_id,
        "data_type": asset.data_type,
        "table_name": asset.table_name,
        "blob_path": asset.blob_path,
        "outputs": {
            **described,
            "stac_item_id": asset.item_id,
            "stac_collection_id": asset.collection_id,
            "styles": asset.styles.model_dump(mode="json", exclude_none=True),
        },
        "item": item,
        "side_items": side_items(item, outputs) if item else [],
        "collection": collection_document(asset.collection_id, outputs),
        "asset": asset,
    }


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
        await write_items(
            conn,
            entry["item"]["collection"],
            entry["collection"],
            entry["platform_id"],
            items=[entry["item"], *entry["side_items"]],
            series=[entry["item"]["id"]],
        )


def scenes_outside(outputs: Mapping[str, Any], files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The outputs, in which each scene of a series has its place in the external zone."""
    if not isinstance(outputs.get("scenes"), dict):
        return dict(outputs)
    places = {within_revision(file["path"]): f"{file['container']}/{file['path']}" for file in files}
    scenes = {
        name: {**scene, "blob_path": places.get(within_revision(scene["blob_path"]))}
        for name, scene in outputs["scenes"].items()
    }
    return {**outputs, "scenes": {name: scene for name, scene in scenes.items() if scene["blob_path"]}}


def blob_path_outside(inside: str | None, files: Sequence[dict[str, Any]]) -> str | None:
    """The place of the main file in the external zone: the same place within the folder of its revision."""
    if inside is None:
        return None
    name = within_revision(inside)
    return next(
        (f"{file['container']}/{file['path']}" for file in files if within_revision(file["path"]) == name), None
    )
