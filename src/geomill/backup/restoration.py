"""Restores a backup: objects, then keys, then the databases.

The order matters, because the first two steps can be repeated: an object or key that is there already, with the same
content, is left. The databases are loaded in one transaction each, and both are committed at the end. So a restoration
that breaks off leaves the databases empty, and can be run again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

from geomill.backup.loading import RebuiltItems, RestoreLoad, require_empty, require_known
from geomill.backup.manifest import KeyFile, Manifest, ObjectLine
from geomill.backup.metering import ProgressMeter
from geomill.backup.packing import unpacked
from geomill.backup.problems import translated
from geomill.backup.resumption import Resumed, resume
from geomill.backup.verification import checked_object, object_lines
from geomill.domain.objectname import Zone
from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.errors import BackupInvalid, ConflictError, NotFoundError, SettingsError
from geomill.storage import SyncStorage
from geomill.storage.depot import Depot
from geomill.store.pool import Connection, open_pool

AT_ONCE = 4
BATCH = 1000
LARGEST_KEY = 10_000


@dataclass
class RestoredObjects:
    written: int = 0
    unchanged: int = 0
    missing: list[str] = field(default_factory=list)
    """Objects that the platform needs and that are neither in the backup nor in their zone."""
    different: list[str] = field(default_factory=list)
    """Objects in their zone that have another content. They are left as they are."""

    etags: dict[str, str] = field(default_factory=dict, repr=False)
    """The etags of sources in the backup, each with the etag of the same bytes in this store."""

    def count(self, line: ObjectLine, outcome: str, etag: str) -> None:
        if line.zone is Zone.BRONZE and line.copied and line.etag and outcome in ("written", "unchanged"):
            self.etags[line.etag] = etag
        match outcome:
            case "written":
                self.written += 1
            case "unchanged":
                self.unchanged += 1
            case "different":
                self.different.append(str(line.name))
            case _:
                self.missing.append(str(line.name))


@dataclass(frozen=True)
class RestoredDatabases:
    inside: RebuiltItems
    outside: RebuiltItems | None
    resumed: Resumed


def require_fit(manifest: Manifest, *, has_outside: bool) -> None:
    """Raises unless this release can restore the backup into such a target."""
    require_known(manifest.inside, TABLES)
    if manifest.outside is None:
        return
    require_known(manifest.outside, EXTERNAL_TABLES)
    if not has_outside:
        raise SettingsError(
            "the backup has an external zone's database, and the target has none",
            remedy="set GEOMILL_EXTERNAL_DATABASE_URL",
        )


async def require_empty_target(inside_url: str, outside_url: str | None) -> None:
    for url, models in ((inside_url, TABLES), (outside_url, EXTERNAL_TABLES)):
        if url is not None:
            async with open_single(url) as conn:
                await require_empty(conn, models)


def restore_objects(depot: Depot, manifest: Manifest, storage: SyncStorage, meter: ProgressMeter) -> RestoredObjects:
    """Write the objects that the backup contains, and look for those that it only lists."""
    storage.prepare()
    report = RestoredObjects()
    meter.begin("objects", manifest.objects.object_bytes)
    index = object_lines(depot, manifest)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="restore") as threads:
        while batch := list(islice(index, BATCH)):
            outcomes = threads.map(lambda line: _restore_object(depot, line, storage, meter), batch)
            for line, (outcome, etag) in zip(batch, outcomes, strict=True):
                report.count(line, outcome, etag)
    return report


def _restore_object(depot: Depot, line: ObjectLine, storage: SyncStorage, meter: ProgressMeter) -> tuple[str, str]:
    """Restore one object. Returns the outcome and its etag."""
    try:
        present = storage.stat(line.name)
    except NotFoundError:
        if not line.copied:
            return "missing", ""
    else:
        meter.advance(line.size)
        return ("unchanged" if present.size == line.size and _same(storage, line) else "different"), present.etag

    def parts() -> Iterator[bytes]:
        for data in checked_object(depot, line):
            meter.advance(len(data))
            yield data

    storage.put_parts(line.name, parts, line.size)
    return "written", storage.stat(line.name).etag if line.zone is Zone.BRONZE else ""


def _same(storage: SyncStorage, line: ObjectLine) -> bool:
    """Return whether an object in its zone has the content of the backup. Read it only if the backup has its bytes."""
    if line.sha256 is None or not line.copied:
        return True
    digest = sha256()
    for data in storage.stream(line.name):
        digest.update(data)
    return digest.hexdigest() == line.sha256


def restore_keys(depot: Depot, manifest: Manifest, data: Path) -> list[str]:
    """Write the key files that the data folder does not have. Raises, before anything is written, if it has others."""
    contents = {key.name: _key(depot, key) for key in manifest.keys}
    for name, content in contents.items():
        file = data / name
        if file.exists() and file.read_bytes().strip() != content.strip():
            raise ConflictError(f"{file} is there already, with another key", remedy="move it away, then restore again")
    data.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if not (data / name).exists():
            _write_private(data / name, content)
    return sorted(contents)


def _key(depot: Depot, key: KeyFile) -> bytes:
    if key.size > LARGEST_KEY:
        raise BackupInvalid(f"'{key.path}' is too large for a key")
    return b"".join(unpacked(depot, key))


def _write_private(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())


async def restore_databases(
    depot: Depot,
    manifest: Manifest,
    inside_url: str,
    outside_url: str | None,
    meter: ProgressMeter,
    *,
    job_queue: str,
    cancel_jobs: bool = False,
    etags: Mapping[str, str] | None = None,
) -> RestoredDatabases:
    """Load the databases, which are migrated already."""
    databases = [manifest.inside, *([manifest.outside] if manifest.outside else [])]
    meter.begin("databases", sum(part.size for database in databases for part in database.parts))
    with translated("write to it"):
        return await _load(depot, manifest, inside_url, outside_url, meter, job_queue, etags or {}, cancel_jobs)


async def _load(
    depot: Depot,
    manifest: Manifest,
    inside_url: str,
    outside_url: str | None,
    meter: ProgressMeter,
    job_queue: str,
    etags: Mapping[str, str],
    cancel_jobs: bool,
) -> RestoredDatabases:
    async with AsyncExitStack() as stack:
        inside_conn = await stack.enter_async_context(open_single(inside_url))
        await stack.enter_async_context(inside_conn.transaction())
        outside = None
        if manifest.outside is not None and outside_url is not None:
            outside_conn = await stack.enter_async_context(open_single(outside_url))
            await stack.enter_async_context(outside_conn.transaction())
            outside = await RestoreLoad(outside_conn, depot, manifest.outside, EXTERNAL_TABLES, meter).run()
        inside = await RestoreLoad(inside_conn, depot, manifest.inside, TABLES, meter).run()
        resumed = await resume(inside_conn, job_queue, etags, cancel_jobs=cancel_jobs)
    return RestoredDatabases(inside, outside, resumed)


@asynccontextmanager
async def open_single(url: str) -> AsyncIterator[Connection]:
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        yield conn
