"""The place of a backup: a folder, or a path in an object store.

Paths are relative to it and are checked. A file appears only when it is complete. In a folder only the owner can read
the files, because a backup contains keys.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from geomill.domain.location import AzureAccount, Folder, S3Bucket, parse_location
from geomill.domain.objectname import check_container, check_path
from geomill.errors import InvalidName, NotFoundError, StorageDenied, StorageUnavailable
from geomill.storage.recipe import StorageRecipe
from geomill.storage.stores import Stores
from geomill.storage.transfer import PART, in_order

if TYPE_CHECKING:
    from obstore.store import ObjectStore

UNFINISHED = ".part"
_HELP = "give a folder, az://account/container[/path] or s3://bucket[/path]"


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Depot(Protocol):
    @property
    def place(self) -> str:
        """The place as text for people."""

    def writing(self, path: str) -> AbstractContextManager[Sink]:
        """Open a file for writing. It appears at the end of the block, unless an error ends the block."""

    def reading(self, path: str) -> Iterator[bytes]:
        """Yield a file in parts of some megabytes. Raises `NotFoundError`."""

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files, in any order."""


def open_depot(text: str, recipe: StorageRecipe) -> Depot:
    try:
        location = parse_location(text)
    except InvalidName:
        raise InvalidName("this is not the place of a backup", remedy=_HELP) from None
    if isinstance(location, Folder):
        return FolderDepot(location.path.absolute())
    if isinstance(location, S3Bucket):
        return StoreDepot(str(location), Stores(recipe).open(location, ""))
    container, _, prefix = location.prefix.partition("/")
    if not container:
        raise InvalidName(f"{location} names no container", remedy=_HELP)
    check_container(container)
    return StoreDepot(str(location), Stores(recipe).open(AzureAccount(location.account, prefix), container))


@dataclass(frozen=True)
class FolderDepot:
    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    @contextmanager
    def writing(self, path: str) -> Iterator[Sink]:
        target = self._file(path)
        draft = target.with_name(target.name + UNFINISHED)
        with _translated(self.place):
            self._make_folders(target.parent)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with _translated(self.place), os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def reading(self, path: str) -> Iterator[bytes]:
        with _translated(self.place, path), self._file(path).open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotFoundError(f"'{path}' in {self.place} is not a file")
            while data := file.read(PART):
                yield data

    def paths(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.root):
            for name in names:
                yield (Path(folder) / name).relative_to(self.root).as_posix()

    def _make_folders(self, folder: Path) -> None:
        """Create the folders one by one. With `parents`, others could read those in between."""
        if not folder.is_dir():
            if folder == self.root:
                folder.parent.mkdir(parents=True, exist_ok=True)
            else:
                self._make_folders(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)

    def _file(self, path: str) -> Path:
        """Return the path of a file. Raises `InvalidName` if it is outside the folder, even by a symbolic link."""
        file = self.root / check_path(path)
        if not file.resolve().is_relative_to(self.root.resolve()):
            raise InvalidName(f"path {path!r} leads out of the backup by a symbolic link")
        return file


@dataclass(frozen=True)
class StoreDepot:
    place: str
    store: ObjectStore

    @contextmanager
    def writing(self, path: str) -> Iterator[Sink]:
        """Open an object for writing. Without `close` the upload is never completed, so the object does not appear."""
        with _translated(self.place, path):
            writer = obstore.open_writer(self.store, check_path(path), buffer_size=PART, max_concurrency=4)
            yield writer
            writer.close()

    def reading(self, path: str) -> Iterator[bytes]:
        key = check_path(path)
        with _translated(self.place, path):
            # Own threads: the consumer may be obstore itself, which is not reentrant.
            with ThreadPoolExecutor(1) as thread:
                size = thread.submit(obstore.head, self.store, key).result()["size"]
            yield from in_order(
                lambda begin, end: bytes(obstore.get_range(self.store, key, start=begin, end=end)), 0, size, PART
            )

    def paths(self) -> Iterator[str]:
        with _translated(self.place):
            for batch in obstore.list(self.store):
                yield from (meta["path"] for meta in batch)


@contextmanager
def _translated(place: str, path: str = "") -> Iterator[None]:
    """Translate errors of the store. Their text is left out, because it may contain a signature."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(f"there is no '{path}' in {place}") from None
    except (PermissionError, PermissionDeniedError, UnauthenticatedError):
        raise StorageDenied(
            f"{place} refuses access", remedy="check the credentials, or the rights of the folder"
        ) from None
    except (OSError, BaseError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise StorageUnavailable(f"{place} cannot be used: {reason}") from None
