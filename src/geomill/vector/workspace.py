"""Provides the source on this machine, under a file name that GDAL recognises.

Files in a folder are read in place. Files in a remote store are copied, and ZIP files are unpacked, once for each
machine and job. The copies are deleted with the job's other intermediates.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from geomill.datasets.intermediates import folder_of, mount
from geomill.datasets.source import Source
from geomill.sdk import HandlerContext
from geomill.vector.archives import SHAPEFILE_PARTS, unpack
from geomill.vector.facts import Format
from geomill.vector.formats import DRIVERS, HEADER_BYTES, ZIP_MAGIC, detect

COPY = "data.parquet"


def local_data(ctx: HandlerContext[Any], source: Source, layer: str | None) -> tuple[Path, Format]:
    """Return a path to this job's source and its format."""
    folder = mount() / folder_of(ctx.job_id)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        return prepared(_original(ctx, source, folder), source.file_name, folder, layer)


def original_data(ctx: HandlerContext[Any], source: Source) -> Path:
    """Return a path to this job's source as it was submitted, which may be an archive."""
    folder = mount() / folder_of(ctx.job_id)
    with _locked(folder):
        return _original(ctx, source, folder)


def prepared(original: Path, name: str, folder: Path, layer: str | None) -> tuple[Path, Format]:
    """Return a path in the folder under which GDAL recognises the file, and the file's format."""
    if is_archive(original):
        original = _unpacked(original, name, folder, layer)
        if original.suffix == ".shp":
            return original, Format.SHAPEFILE
        name = original.name
    file_format = detect(_header(original, HEADER_BYTES), name)
    return _named(original, folder, DRIVERS[file_format].extension), file_format


def is_archive(path: Path) -> bool:
    return _header(path, len(ZIP_MAGIC)) == ZIP_MAGIC


def by_columns(ctx: HandlerContext[Any], source: Source, make: Callable[[Path], object]) -> Path:
    """Return the Parquet copy of the current source. The first task on this machine makes it."""
    folder, content = mount() / folder_of(ctx.job_id), sha256((source.etag or "").encode()).hexdigest()[:16]
    with _locked(folder):

        def fill(draft: Path) -> None:
            draft.mkdir()
            make(draft / COPY)

        return _once(folder / f"columns-{content}", fill) / COPY


def forget(job_id: str) -> None:
    """Delete the job's files on this machine."""
    shutil.rmtree(mount() / folder_of(job_id), ignore_errors=True)


def _original(ctx: HandlerContext[Any], source: Source, folder: Path) -> Path:
    path = ctx.storage.gdal_path(source.name)
    if not path.startswith("/vsi"):
        ctx.storage.sync.stat(source.name)  # raises a clear error if it is missing
        return Path(path)
    target = folder / "source"
    if not target.exists():
        ctx.storage.sync.get_file(source.name, target, progress=lambda _done, _total: ctx.raise_if_cancelled())
    return target


def _unpacked(archive: Path, name: str, folder: Path, layer: str | None) -> Path:
    unpacked = _once(folder / "unpacked", lambda target: unpack(archive, name, target, layer))
    return next(path for path in unpacked.iterdir() if path.suffix not in SHAPEFILE_PARTS[1:])


def _once(target: Path, make: Callable[[Path], object]) -> Path:
    """Return the folder, which is filled completely or not created."""
    if not target.exists():
        draft = target.with_name(f"{target.name}-{uuid4().hex}")
        try:
            make(draft)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target


def _named(original: Path, folder: Path, extension: str) -> Path:
    link = folder / f"data{extension}"
    if not link.is_symlink():
        draft = folder / f"link-{uuid4().hex}"
        draft.symlink_to(original.absolute())
        draft.rename(link)
    return link


def _header(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time into the block. The lock ends with its holder."""
    with (folder / ".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
