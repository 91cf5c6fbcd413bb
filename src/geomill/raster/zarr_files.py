"""The files of a Zarr store: members of a ZIP file, or objects in a folder."""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from geomill.datasets.refusals import refused
from geomill.domain.sniff import ZARR_ROOTS
from geomill.errors import NotFoundError
from geomill.sdk import HandlerError, ObjectName, Storage

ZIP = b"PK\x03\x04"
MOST_FILES = 200_000
READ_AT_ONCE = 64 * 1024 * 1024
LARGEST_DIRECTORY = 32 * 1024 * 1024
_ENCRYPTED = 0x1
_END, _END_BYTES = b"PK\x05\x06", 22 + 65_535


class ZarrFiles(Protocol):
    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files, by their paths below the root of the store."""
        ...

    @property
    def packed(self) -> int:
        """The bytes that the source has."""
        ...

    def read(self, path: str) -> bytes: ...

    def copy(self, path: str, target: Path) -> None: ...


@dataclass(frozen=True)
class ZippedFiles:
    archive: zipfile.ZipFile
    name: ObjectName
    root: str
    """The folder of the store in the ZIP file, with a slash at its end, or nothing."""
    sizes: Mapping[str, int]
    packed: int

    def read(self, path: str) -> bytes:
        with self.archive.open(self._member(path)) as file:
            return file.read()

    def copy(self, path: str, target: Path) -> None:
        with self.archive.open(self._member(path)) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)

    def _member(self, path: str) -> zipfile.ZipInfo:
        """Return a member. zipfile returns no more than the declared size and compares the checksum."""
        member = self.archive.getinfo(self.root + path)
        if member.flag_bits & _ENCRYPTED:
            raise refused("unsafe_archive", f"'{self.name}' has a password: pack it without one")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused("unsafe_archive", f"'{self.name}' has an unusual compression: pack it with zip -0")
        return member


@dataclass(frozen=True)
class FolderFiles:
    """Objects below a folder of the source's own container. Only listed names are read."""

    storage: Storage
    name: ObjectName
    root: str
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def packed(self) -> int:
        return sum(self.sizes.values())

    def read(self, path: str) -> bytes:
        with self._there(path):
            return self.storage.sync.read(self._object(path))

    def copy(self, path: str, target: Path) -> None:
        with self._there(path):
            if self.sizes[path] <= READ_AT_ONCE:
                target.write_bytes(self.storage.sync.read(self._object(path), 0, self.sizes[path]))
            else:
                self.storage.sync.get_file(self._object(path), target)

    def _object(self, path: str) -> ObjectName:
        return ObjectName(self.name.zone, self.name.container, self.root + path)

    @contextmanager
    def _there(self, path: str) -> Iterator[None]:
        try:
            yield
        except NotFoundError as error:
            raise HandlerError(
                f"the file '{path[:120]}' of the store '{self.name}' was deleted meanwhile", code="source_changed"
            ) from error


def is_root(name: ObjectName) -> bool:
    """Whether the source is named by the metadata of a store's root, so that its folder is the store."""
    return name.path.rpartition("/")[2] in ZARR_ROOTS


def folder_files(storage: Storage, name: ObjectName) -> FolderFiles:
    """List the store that the object is the root of."""
    root = name.path.rpartition("/")[0]
    prefix = f"{root}/" if root else ""
    sizes: dict[str, int] = {}
    for batch in storage.sync.batches(name.zone, name.container, root):
        sizes |= {info.name.path.removeprefix(prefix): info.size for info in batch}
        if len(sizes) > MOST_FILES:
            raise _too_many(name, len(sizes))
    return FolderFiles(storage, name, prefix, sizes)


@contextmanager
def zipped_files(path: Path, name: ObjectName) -> Iterator[ZippedFiles]:
    """Open the ZIP file. Raises a refusal if it holds no Zarr store."""
    try:
        _check_directory(path, name)
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member.file_size for member in archive.infolist() if not member.is_dir()}
            root = _root(members, name)
            sizes = {path.removeprefix(root): size for path, size in members.items() if path.startswith(root)}
            yield ZippedFiles(archive, name, root, sizes, path.stat().st_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, UnicodeDecodeError) as error:
        raise refused("unreadable", f"'{name}' is a damaged or unknown ZIP file") from error


def _too_many(name: ObjectName, count: int) -> Exception:
    return refused("too_large", f"'{name}' holds {count:,} files; the maximum is {MOST_FILES:,}: write larger chunks")


def _check_directory(path: Path, name: ObjectName) -> None:
    """Check the number of files before zipfile makes an object of each."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END_BYTES - 20 - 56))
        tail = file.read()
    end = tail.rfind(_END)
    if end < 0 or len(tail) < end + 22:
        raise zipfile.BadZipFile
    count, size = struct.unpack("<10xHL6x", tail[end : end + 22])
    wide = tail[max(0, end - 76) : end]  # many files need a second record, and zipfile looks for it just here
    if len(wide) == 76 and wide.startswith(b"PK\x06\x06") and wide[56:60] == b"PK\x06\x07":
        count, size = struct.unpack("<32xQQ8x", wide[:56])
    if count > MOST_FILES or size > LARGEST_DIRECTORY:
        raise _too_many(name, count)


def _root(members: Iterable[str], name: ObjectName) -> str:
    roots = {path.rpartition("/")[0] for path in members if path.rpartition("/")[2] in ZARR_ROOTS}
    if not roots:
        raise refused(
            "unsupported_format",
            f"'{name}' is a ZIP file without a Zarr store: upload the raster in it, without the ZIP file",
        )
    root = min(roots, key=lambda path: (path.count("/") if path else -1, path))
    others = [path for path in roots if path != root and root and not path.startswith(f"{root}/")]
    if others:
        raise refused("unsupported_format", f"'{name}' has several Zarr stores: upload each in a ZIP file of its own")
    return f"{root}/" if root else ""
