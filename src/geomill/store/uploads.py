"""Uploads in the database. Who writes to an upload holds a lease on its row, which each step forward renews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from geomill.domain.assets.upload import NewUpload, Upload, UploadStatus
from geomill.errors import ConflictError, NotFoundError
from geomill.sql import queries
from geomill.storage.drafts import DraftPart
from geomill.store.pool import Connection

LEASE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class OpenUploads:
    """The uploads of a platform that are not complete, and the bytes that they will have."""

    uploads: int
    bytes: int


async def serialise(conn: Connection, platform_id: str) -> None:
    """Let nobody else open an upload of the platform until the transaction ends."""
    await conn.execute(queries("uploads").serialise, {"platform_id": platform_id})


async def open_figures(conn: Connection, platform_id: str) -> OpenUploads:
    row = await (await conn.execute(queries("uploads").open_figures, {"platform_id": platform_id})).fetchone()
    assert row is not None
    return OpenUploads(**row)


async def create(conn: Connection, upload: NewUpload) -> Upload:
    row = await (await conn.execute(queries("uploads").create, upload.model_dump())).fetchone()
    if row is None:
        raise ConflictError(
            f"there is already an upload of '{upload.file_name}'",
            remedy="continue that one, remove it, or choose another folder or file name",
        )
    return Upload.from_row(row)


async def get(conn: Connection, upload_id: str) -> Upload:
    row = await (await conn.execute(queries("uploads").get, {"upload_id": upload_id})).fetchone()
    if row is None:
        raise unknown(upload_id)
    return Upload.from_row(row)


def unknown(upload_id: str) -> NotFoundError:
    """Return the error for a missing upload. That of another platform gets the same answer."""
    return NotFoundError(f"there is no upload '{upload_id[:64]}'", remedy="list the uploads, or begin a new one")


async def page(
    conn: Connection,
    *,
    platform_id: str | None,
    status: UploadStatus | None = None,
    sha256: str | None = None,
    file_name: str | None = None,
    limit: int,
    before: tuple[datetime, str] | None = None,
) -> list[Upload]:
    """Return uploads, the newest first. `before` is the creation time and id of the last one of the page before."""
    moment, upload_id = before or (None, None)
    parameters = {
        "platform_id": platform_id,
        "status": status,
        "sha256": sha256,
        "file_name": file_name,
        "limit": limit,
        "before": moment,
        "before_id": upload_id,
    }
    rows = await (await conn.execute(queries("uploads").page, parameters)).fetchall()
    return [Upload.from_row(row) for row in rows]


async def lease(conn: Connection, upload_id: str, writer: str, *, any_status: bool = False) -> Upload | None:
    """Take the right to write. Returns None if somebody else has it, or if nothing can be written any more."""
    statement = queries("uploads").lease_any if any_status else queries("uploads").lease
    parameters = {"upload_id": upload_id, "writer": writer, "seconds": LEASE_SECONDS}
    row = await (await conn.execute(statement, parameters)).fetchone()
    return Upload.from_row(row) if row else None


async def renew(conn: Connection, upload_id: str, writer: str) -> bool:
    """Keep the right to write. Returns whether it was still there."""
    parameters = {"upload_id": upload_id, "writer": writer, "seconds": LEASE_SECONDS}
    return await (await conn.execute(queries("uploads").renew, parameters)).fetchone() is not None


async def release(conn: Connection, upload_id: str, writer: str) -> None:
    await conn.execute(queries("uploads").release, {"upload_id": upload_id, "writer": writer})


async def save(conn: Connection, upload_id: str, writer: str, begin: int, end: int, parts: Sequence[DraftPart]) -> bool:
    """Note that the bytes up to `end` are safe. Returns False if the right to write was lost."""
    parameters = {
        "upload_id": upload_id,
        "writer": writer,
        "begin": begin,
        "end": end,
        "seconds": LEASE_SECONDS,
        "begins": [part.begin for part in parts],
        "sizes": [part.size for part in parts],
        "paths": [part.path for part in parts],
    }
    return await (await conn.execute(queries("uploads").save, parameters)).fetchone() is not None


async def parts(conn: Connection, upload_id: str) -> list[DraftPart]:
    rows = await (await conn.execute(queries("uploads").parts, {"upload_id": upload_id})).fetchall()
    return [DraftPart(row["begin_byte"], row["size"], row["object_path"]) for row in rows]


async def complete(conn: Connection, upload_id: str, writer: str, length: int, sha256: str) -> Upload | None:
    """Note that the file is whole and lies under its name. Returns None if the right to write was lost."""
    parameters = {"upload_id": upload_id, "writer": writer, "length": length, "sha256": sha256}
    async with conn.transaction():
        row = await (await conn.execute(queries("uploads").complete, parameters)).fetchone()
        if row is None:
            return None
        await conn.execute(queries("uploads").delete_parts, {"upload_id": upload_id})
    return Upload.from_row(row)


async def fail(conn: Connection, upload_id: str, writer: str, error: str) -> None:
    await conn.execute(queries("uploads").fail, {"upload_id": upload_id, "writer": writer, "error": error})


async def remove(conn: Connection, upload_id: str, writer: str) -> None:
    """Delete the row, whose bytes are gone."""
    await conn.execute(queries("uploads").remove, {"upload_id": upload_id, "writer": writer})


async def needed_by(conn: Connection, upload: Upload) -> str | None:
    """Return a request that still reads the file, or None."""
    parameters = {"container_name": upload.container_name, "file_name": upload.file_name}
    row = await (await conn.execute(queries("uploads").needed_by, parameters)).fetchone()
    return str(row["request_id"]) if row else None


@dataclass(frozen=True, slots=True)
class UploadAges:
    """How long uploads are kept: unfinished ones, files that no request named, and files that one did. None means for
    ever."""

    unfinished: timedelta | None = None
    unused: timedelta | None = None
    used: timedelta | None = None

    def parameters(self) -> dict[str, float | None]:
        ages = {"unfinished": self.unfinished, "unused": self.unused, "used": self.used}
        return {name: age.total_seconds() if age is not None else None for name, age in ages.items()}


async def due(conn: Connection, ages: UploadAges, limit: int) -> list[Upload]:
    """Return the uploads whose time is over, the oldest first."""
    rows = await (await conn.execute(queries("uploads").due, {**ages.parameters(), "limit": limit})).fetchall()
    return [Upload.from_row(row) for row in rows]


async def claim(conn: Connection, limit: int) -> list[Upload]:
    """Take uploads to fetch from their URLs."""
    rows = await (await conn.execute(queries("uploads").claim, {"limit": limit})).fetchall()
    return [Upload.from_row(row) for row in rows]


async def learn(conn: Connection, upload_id: str, length: int | None, etag: str | None) -> Upload | None:
    """Note what the server of a URL has told. Returns None if somebody else writes to the upload."""
    parameters = {"upload_id": upload_id, "length": length, "etag": etag}
    row = await (await conn.execute(queries("uploads").learn, parameters)).fetchone()
    return Upload.from_row(row) if row else None


async def restart(conn: Connection, upload_id: str) -> None:
    async with conn.transaction():
        await conn.execute(queries("uploads").restart, {"upload_id": upload_id})
        await conn.execute(queries("uploads").delete_parts, {"upload_id": upload_id})


async def progressed(conn: Connection, upload_id: str) -> None:
    await conn.execute(queries("uploads").progressed, {"upload_id": upload_id})


async def note_error(conn: Connection, upload_id: str, error: str, *, final: bool) -> None:
    """Note why an attempt to fetch a file failed. The last attempt ends the upload."""
    await conn.execute(queries("uploads").note_error, {"upload_id": upload_id, "error": error[:500], "final": final})
