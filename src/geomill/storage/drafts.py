"""Drafts: bytes of an object that arrive over several requests, perhaps in several processes.

A draft in a folder is one file beside the containers. It is moved to its name in one step. Azure and S3 cannot append
to an object in a way that both share, so there each piece is an object, and the pieces are put together at the end.
Nothing lies under the object's own name before all bytes are there and their checksum fits.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from geomill.domain.objectname import ObjectName
from geomill.errors import (
    ChecksumMismatch,
    NotFoundError,
    StorageDenied,
    StorageFull,
    StorageUnavailable,
    UploadGone,
    UploadLocked,
)
from geomill.storage.transfer import PART, fetched_ahead, part_size
from geomill.storage.waiting import SyncStorage

DRAFTS = ".drafts"
"""The folder of drafts in a local zone. It is not a valid container name."""
STORED_DRAFTS = ".geomill-drafts"
"""The folder of pieces in a container of Azure or S3."""
WRITTEN_AT_ONCE = 1024 * 1024
RESERVED_BYTES = 256 * 1024 * 1024
"""The room on a disk that uploads leave, because the database may lie on the same disk."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class DraftPart:
    """A piece of a draft that is an object of its own."""

    begin: int
    size: int
    path: str


class DraftWriter(Protocol):
    """Appends to a draft. Only one writer works on a draft at a time."""

    at_once: int
    """The bytes to collect before they are written."""

    def write(self, data: bytes) -> None: ...

    def sync(self) -> list[DraftPart]:
        """Make all bytes safe that were written. Returns the pieces since the last call, where a draft has pieces."""

    def close(self) -> None: ...


class Draft(Protocol):
    def free_bytes(self) -> int | None:
        """Return the room on the disk, or None where there is no such limit."""

    def open(self, begin: int, length: int | None) -> DraftWriter:
        """Continue after the first `begin` bytes. Later bytes, which nobody noted, are dropped."""

    def placed(self, length: int) -> bool:
        """Whether an earlier process has put the whole draft under its name and died before it could say so."""

    def place(self, length: int, parts: Sequence[DraftPart], sha256: str | None) -> str:
        """Check the bytes and put them under their name. Returns their SHA-256. Raises `ChecksumMismatch`."""

    def discard(self) -> None: ...


def draft_of(storage: SyncStorage, name: ObjectName, draft_id: str) -> Draft:
    """Return the draft of an object."""
    place = storage.local_place(name)
    return FolderDraft(*place, draft_id) if place else StoreDraft(storage, name, draft_id)


@dataclass(frozen=True)
class FolderDraft:
    zone: Path
    target: Path
    draft_id: str

    @property
    def _file(self) -> Path:
        return self.zone / DRAFTS / self.draft_id

    def free_bytes(self) -> int | None:
        with _translated():
            return max(0, shutil.disk_usage(self.zone).free - RESERVED_BYTES)

    def open(self, begin: int, length: int | None) -> FileWriter:  # noqa: ARG002  the interface of both kinds
        with _translated():
            self._file.parent.mkdir(exist_ok=True)
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            _lock(descriptor)
            _require_bytes(descriptor, begin)
            with _translated():
                os.ftruncate(descriptor, begin)
                os.lseek(descriptor, begin, os.SEEK_SET)
                if begin == 0:
                    _sync_folder(self._file.parent)
        except BaseException:
            os.close(descriptor)
            raise
        return FileWriter(descriptor)

    def placed(self, length: int) -> bool:
        return not self._file.exists() and self.target.is_file() and self.target.stat().st_size == length

    def place(self, length: int, parts: Sequence[DraftPart], sha256: str | None) -> str:  # noqa: ARG002
        with _translated():
            if self.placed(length):
                return _digest(self.target)
            digest = _digest(self._file)
            _require(digest, sha256)
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._file.replace(self.target)
            _sync_folder(self.target.parent)
        return digest

    def discard(self) -> None:
        with _translated():
            self._file.unlink(missing_ok=True)


@dataclass
class FileWriter:
    _descriptor: int
    at_once: int = WRITTEN_AT_ONCE

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        with _translated():
            _require_room(self._descriptor)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> list[DraftPart]:
        with _translated():
            os.fsync(self._descriptor)
        return []

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class StoreDraft:
    storage: SyncStorage
    target: ObjectName
    draft_id: str

    @property
    def _folder(self) -> str:
        return f"{STORED_DRAFTS}/{self.draft_id}"

    def free_bytes(self) -> int | None:
        return None

    def open(self, begin: int, length: int | None) -> PieceWriter:
        return PieceWriter(self.storage, self.target, self._folder, begin, part_size(length or 0))

    def placed(self, length: int) -> bool:  # noqa: ARG002  pieces stay until the end is noted: it is done again
        return False

    def place(self, length: int, parts: Sequence[DraftPart], sha256: str | None) -> str:
        _require_gapless(parts, length)
        digest = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            nonlocal digest
            digest = hashlib.sha256()
            for data in fetched_ahead(partial(self.storage.read, self._piece(part.path)) for part in parts):
                digest.update(data)
                yield data
            _require(digest.hexdigest(), sha256)

        self.storage.put_parts(self.target, pieces, length)
        return digest.hexdigest()

    def discard(self) -> None:
        with contextlib.suppress(NotFoundError):  # the container does not exist
            self.storage.delete_prefix(self.target.zone, self.target.container, self._folder)

    def _piece(self, path: str) -> ObjectName:
        return ObjectName(self.target.zone, self.target.container, path)


@dataclass
class PieceWriter:
    """Writes each piece as an object with a name of its own, so that two writers never overwrite each other."""

    storage: SyncStorage
    target: ObjectName
    folder: str
    position: int
    at_once: int = PART
    _parts: list[DraftPart] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        part = DraftPart(self.position, len(data), f"{self.folder}/{self.position:015d}-{uuid4().hex}")
        try:
            self.storage.put_bytes(ObjectName(self.target.zone, self.target.container, part.path), data)
        except NotFoundError:
            raise StorageUnavailable(
                f"the container '{self.target.container}' does not exist in the zone '{self.target.zone}'",
                remedy="ask an administrator to create it",
            ) from None
        self._parts.append(part)
        self.position += len(data)

    def sync(self) -> list[DraftPart]:
        parts, self._parts = self._parts, []
        return parts

    def close(self) -> None:
        pass


def _require_gapless(parts: Sequence[DraftPart], length: int) -> None:
    position = 0
    for part in parts:
        if part.begin != position:
            break
        position += part.size
    if position != length:
        raise UploadGone(f"only {position} of {length} bytes are there without a gap", remedy="begin a new upload")


def _require(digest: str, sha256: str | None) -> None:
    if sha256 is not None and digest != sha256:
        raise ChecksumMismatch(
            f"the file has the SHA-256 {digest}, not {sha256}", remedy="check the file and upload it again"
        )


def _require_bytes(descriptor: int, begin: int) -> None:
    if os.fstat(descriptor).st_size < begin:
        raise UploadGone("the bytes that were received are lost", remedy="begin a new upload")


def _require_room(descriptor: int) -> None:
    disk = os.fstatvfs(descriptor)
    if disk.f_bavail * disk.f_frsize < RESERVED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _lock(descriptor: int) -> None:
    """Lock the file. A request that lost its lease but not its connection may still be writing to it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UploadLocked("another request is sending bytes of this upload", remedy="wait, then continue") from None


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise StorageDenied("the folder of uploads cannot be written", remedy="give this user the right") from None
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull("the disk of uploads is full", remedy="ask an operator to make room") from None
        raise StorageUnavailable(f"the folder of uploads cannot be used: {error.strerror}") from None
