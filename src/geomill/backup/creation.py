"""Creates a backup. The manifest is written last: files without a manifest are not a backup."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from geomill import __version__
from geomill.backup import manifest as manifests
from geomill.backup.manifest import DatabasePart, KeyFile, Manifest
from geomill.backup.metering import ProgressMeter
from geomill.backup.packing import packing
from geomill.backup.problems import translated
from geomill.backup.snapshot import Connection, Dump, snapshot
from geomill.backup.zones import Collector, Objects, References
from geomill.domain.objectname import ObjectName
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.errors import ConflictError, GeomillError
from geomill.sql import queries
from geomill.storage import SyncStorage
from geomill.storage.depot import Depot
from geomill.store import fingerprint

KEY_FILES = ("link.key", "admin.key")


@dataclass(frozen=True)
class BackupSource:
    """The databases, the storage and the folder with the key files to back up."""

    inside_url: str
    outside_url: str | None
    storage: SyncStorage
    data: Path


def create(
    source: BackupSource, depot: Depot, objects: Objects, meter: ProgressMeter, *, known_hashes: bool = False
) -> Manifest:
    if next(iter(depot.paths()), None) is not None:
        raise ConflictError(
            f"there is something in {depot.place} already",
            remedy="choose an empty place; files that an interrupted backup has left can be deleted",
        )
    started_at = datetime.now(UTC)
    with translated("read it"):
        inside, outside, references = asyncio.run(_dump(source, depot, meter))
    collected = Collector(source.storage, depot, references, objects, meter, known_hashes).run()
    manifest = Manifest(
        geomill_version=__version__,
        schema_fingerprint=fingerprint.wanted(),
        started_at=started_at,
        finished_at=datetime.now(UTC),
        inside=inside,
        outside=outside,
        objects=collected,
        keys=[key for name in KEY_FILES if (key := _save_key(source.data / name, depot)) is not None],
    )
    with depot.writing(manifests.PATH) as sink:
        sink.write(manifest.to_bytes())
    return manifest


async def _dump(
    source: BackupSource, depot: Depot, meter: ProgressMeter
) -> tuple[DatabasePart, DatabasePart | None, References]:
    """Copy both databases. The inner snapshot is the older one: an export or a withdrawal between the two is already in
    the outer one, and its job, which still runs in the inner one, does it again after a restoration."""
    async with AsyncExitStack() as stack:
        inner = await stack.enter_async_context(snapshot(source.inside_url))
        outer = await stack.enter_async_context(snapshot(source.outside_url)) if source.outside_url else None
        outside = None
        if outer is not None and await _has_schema(outer):
            outside = await Dump(outer, depot, "outside", EXTERNAL_TABLES, meter).run()
        inside = await Dump(inner, depot, "inside", TABLES, meter).run()
        return inside, outside, await _references(inner)


async def _has_schema(conn: Connection) -> bool:
    row = await (await conn.execute(queries("backup").table_there, {"table": "external.assets"})).fetchone()
    return row is not None and bool(row["there"])


async def _references(conn: Connection) -> References:
    """Return the objects that the database refers to. Names that no object can have are skipped."""
    sizes: dict[ObjectName, int] = {}
    hashes: dict[ObjectName, str] = {}
    for row in await (await conn.execute(queries("backup").referenced_objects)).fetchall():
        try:
            name = ObjectName(row["zone"], row["container"], row["path"])
        except GeomillError:
            continue
        sizes[name] = row["size"] or 0
        if row["sha256"]:
            hashes[name] = row["sha256"]
    rows = await (await conn.execute(queries("backup").source_containers)).fetchall()
    return References(sizes, hashes, [row["name"] for row in rows])


def _save_key(file: Path, depot: Depot) -> KeyFile | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    with packing(depot, f"keys/{file.name}.gz") as packed:
        packed.write(content)
    return KeyFile(name=file.name, **packed.fields)  # type: ignore[arg-type]  # one of KEY_FILES
