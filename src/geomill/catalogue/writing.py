"""Catalogue entries read from the assets and written to pgstac, those of one collection in one statement."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from geomill.catalogue.entries import Document, Entry, InvalidEntry, ShownAsset, entry_of
from geomill.domain.access.confidential import new_reference
from geomill.domain.jsonvalue import to_json
from geomill.sql import queries
from geomill.store.pool import Connection

log = logging.getLogger(__name__)


async def shown_assets(conn: Connection, asset_ids: Collection[str]) -> list[ShownAsset]:
    rows = await (await conn.execute(queries("catalogue").shown_assets, {"asset_ids": list(asset_ids)})).fetchall()
    return [ShownAsset(**row) for row in rows]


def build_entry(asset: ShownAsset) -> Entry:
    """Returns the entry of an asset. Raises `InvalidEntry`, and nothing else, whatever a workflow has returned: another
    error would end the orchestrators one after the other."""
    try:
        return entry_of(asset)
    except InvalidEntry:
        raise
    except Exception as error:
        reference = new_reference()
        log.exception("the entry of %s cannot be built, reference %s", asset.asset_id, reference)
        raise InvalidEntry(f"the log has more under the reference {reference}") from error


async def write_entries(conn: Connection, entries: Sequence[Entry]) -> None:
    """Write entries of one collection, in the caller's transaction. It locks the collection."""
    collection_id = entries[0].collection_id
    assert all(entry.collection_id == collection_id for entry in entries)
    described = next((entry for entry in entries if entry.items), entries[0])
    await write_items(
        conn,
        collection_id,
        described.collection,
        described.platform_id,
        items=[item for entry in entries for item in entry.items],
        removed=[entry.item_id for entry in entries if not entry.items],
        series=[entry.item_id for entry in entries if entry.has_series],
    )


async def write_items(
    conn: Connection,
    collection_id: str,
    collection: Document,
    platform_id: str | None,
    *,
    items: Sequence[Document],
    removed: Sequence[str] = (),
    series: Sequence[str] = (),
) -> None:
    """Add or replace items, and remove those that are `removed` and all other side items of the main items `series`."""
    parameters = {
        "collection_id": collection_id,
        "document": to_json(collection),
        "platform_id": platform_id,
        "items": [to_json(item) for item in items],
        "removed": list(removed),
        "series": list(series),
    }
    await conn.execute(queries("catalogue").write_items, parameters)
