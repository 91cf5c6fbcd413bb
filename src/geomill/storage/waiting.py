"""The synchronous interface of all stores.

It is synchronous, because obstore's own coroutines are not safe at the end of a process: sometimes its threads use an
interpreter that has ended, and abort. `Storage` runs it in threads.

Requests that a store does not answer, or answers with "too busy", are repeated with growing pauses, within the time
that the settings allow. After that `StorageUnavailable` is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from uuid import uuid4

import obstore

from geomill.domain.location import AzureAccount, Folder, S3Bucket
from geomill.domain.objectname import ObjectName, Zone, check_path, is_container
from geomill.errors import ConflictError, InputError, InvalidName, NotFoundError, StorageUnavailable
from geomill.storage import gdal
from geomill.storage.objects import ObjectInfo, Progress, Stored
from geomill.storage.problems import persistently, translated
from geomill.storage.recipe import StorageRecipe
from geomill.storage.stores import ResolvedContainer, Stores
from geomill.storage.transfer import PART, TransferMeter, from_file, hash_file, in_order, part_size
from geomill.storage.uploading import Label, copy_inside, put_parts, put_whole

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta

LISTED_AT_ONCE = 1_000
DELETED_AT_ONCE = 250
"""Azure allows 256 in one request, S3 allows 1,000."""
LARGEST_S3_COPY = 5 * 1024**3
PROBED = "geomill-doctor"
"""A container for tests that nothing else uses."""
Result = TypeVar("Result")


class SyncStorage:
    """The storage for synchronous code: commands, and handlers that are not async. `Storage` is for event loops."""

    def __init__(self, recipe: StorageRecipe) -> None:
        self.recipe = recipe
        self._stores = Stores(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return SyncStorage, (self.recipe,)

    # Listing

    def stat(self, name: ObjectName) -> ObjectInfo:
        """Return the facts about an object. Raises `NotFoundError`."""
        shelf, key = self._place(name)
        meta = self._ask(shelf, name.path, lambda: obstore.head(shelf.store, key))
        return _info(name, meta)

    def exists(self, name: ObjectName) -> bool:
        try:
            self.stat(name)
        except NotFoundError:
            return False
        return True

    def list(self, zone: Zone, container: str, prefix: str = "") -> list[ObjectInfo]:
        """Return the objects in a container or in a folder of it, at any depth, by path. `a/b` is in the folder `a`;
        `ab` is not."""
        objects = chain.from_iterable(self.batches(zone, container, prefix))
        return sorted(objects, key=lambda info: info.name.path)

    def batches(self, zone: Zone, container: str, prefix: str = "") -> Generator[Sequence[ObjectInfo], None, None]:
        """Yield what `list` returns in batches, in any order, for large containers."""
        shelf = self._shelf(zone, container)
        if prefix := prefix.rstrip("/"):
            check_path(prefix, "prefix")
        stream = iter(obstore.list(shelf.store, shelf.key(prefix) or None, chunk_size=LISTED_AT_ONCE))
        while True:
            with translated(shelf, ""):
                batch = next(stream, None)
            if batch is None:
                return
            yield _nameable(shelf, batch)

    def containers(self, zone: Zone, expected: Iterable[str] = ()) -> Sequence[str]:
        """Return the containers of a zone, by name. Azure cannot list containers, so there the result is the expected
        ones that exist."""
        location = self._stores.location(zone)
        if isinstance(location, Folder):
            folders = location.path.iterdir() if location.path.is_dir() else ()
            names = [folder.name for folder in folders if folder.is_dir()]
        elif isinstance(location, S3Bucket):
            with translated(self._shelf(zone, PROBED), ""):
                listed = obstore.list_with_delimiter(self._stores.open(location, ""))["common_prefixes"]
            names = [prefix.rstrip("/") for prefix in listed]
        else:
            names = [name for name in set(expected) if self._container_exists(zone, name)]
        return sorted(name for name in names if is_container(name))

    def _container_exists(self, zone: Zone, container: str) -> bool:
        try:
            next(self.batches(zone, container), None)
        except NotFoundError:
            return False
        return True

    # Reading

    def read(self, name: ObjectName, start: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `start`; none if `start` is beyond the end, as with a file."""
        if start < 0 or (length is not None and length < 0):
            raise InputError(f"start {start} and length {length} must not be negative")
        shelf, key = self._place(name)
        if start == 0 and length is None:
            return self._get(shelf, name, key, {})
        size = self.stat(name).size
        end = size if length is None else min(start + length, size)
        return self._get(shelf, name, key, {"range": (start, end)}) if start < end else b""

    def stream(self, name: ObjectName, start: int = 0) -> Generator[bytes, None, None]:
        """Yield an object in parts of some megabytes, fetching ahead. Raises `ConflictError` if it is replaced
        meanwhile."""
        yield from self._parts(self.stat(name), start)

    def get_file(
        self, name: ObjectName, target: Path, *, progress: Progress | None = None, sha256: str | None = None
    ) -> Stored:
        """Download an object. The target appears only when it is complete. A download that broke off, in any process,
        is continued. With `sha256`, an object with another hash is refused."""
        info = self.stat(name)
        mark = hashlib.sha256(f"{name} {info.etag} {target.name}".encode()).hexdigest()[:16]
        unfinished = target.with_name(f".{mark}.part")
        meter = TransferMeter(info.size, progress)
        with _open_unfinished(unfinished, info.size) as file:
            hash_file(unfinished, meter)
            meter.tell()
            with contextlib.closing(self._parts(info, meter.done)) as parts:
                for part in parts:
                    file.write(part)
                    meter.count(part)
                    meter.tell()
            file.flush()
            if sha256 is not None and meter.sha256 != sha256:
                unfinished.unlink()
                raise ConflictError(
                    f"the object '{name}' has the SHA-256 {meter.sha256}, not {sha256}", remedy="upload it again"
                )
            unfinished.replace(target)
        return Stored(name, info.size, meter.sha256)

    def _parts(self, info: ObjectInfo, start: int) -> Generator[bytes, None, None]:
        shelf, key = self._place(info.name)

        def fetch(begin: int, end: int) -> bytes:
            data = self._get(shelf, info.name, key, {"range": (begin, end), "if_match": info.etag})
            if len(data) != end - begin:
                raise StorageUnavailable(f"{shelf.location} sent {len(data)} of {end - begin} bytes of '{info.name}'")
            return data

        yield from in_order(fetch, start, info.size, PART)

    def _get(self, shelf: ResolvedContainer, name: ObjectName, key: str, options: GetOptions) -> bytes:
        return self._ask(shelf, name.path, lambda: bytes(obstore.get(shelf.store, key, options=options).bytes()))

    # Writing

    def put_bytes(
        self,
        name: ObjectName,
        data: bytes,
        *,
        if_absent: bool = False,
        media_type: str | None = None,
        cool: bool = False,
    ) -> Stored:
        """Write an object. With `if_absent`, raises `ConflictError` if it exists; of several concurrent writes one
        succeeds."""
        shelf, key = self._place(name)

        def put() -> None:
            put_whole(shelf, key, data, if_absent=if_absent, label=Label(media_type, cool))

        self._ask(shelf, name.path, put, writing=True, once=if_absent)
        return Stored(name, len(data), hashlib.sha256(data).hexdigest())

    def put_file(
        self,
        name: ObjectName,
        source: Path,
        *,
        progress: Progress | None = None,
        media_type: str | None = None,
        cool: bool = False,
    ) -> Stored:
        """Upload a file, in parts if it is large. An upload that fails leaves nothing visible."""
        with _open_source(source) as file:
            size = os.fstat(file.fileno()).st_size
            meter = TransferMeter(size, progress)
            self._put(name, lambda: from_file(file, part_size(size), meter), size, Label(media_type, cool))
        return Stored(name, meter.done, meter.sha256)

    def put_parts(self, name: ObjectName, parts: Callable[[], Iterator[bytes]], size: int) -> None:
        """Upload the parts that `parts` yields. Each call of `parts` begins again. An upload that fails leaves nothing
        visible."""
        self._put(name, parts, size, Label())

    def _put(self, name: ObjectName, parts: Callable[[], Iterator[bytes]], size: int, label: Label) -> None:
        """Upload parts. Each call of `parts` begins again."""
        if size <= PART:
            self.put_bytes(name, b"".join(parts()), media_type=label.media_type, cool=label.cool)
            return
        shelf, key = self._place(name)

        def put() -> None:
            put_parts(shelf, key, parts(), size, label=label)

        self._ask(shelf, name.path, put, writing=True)

    def copy(self, source: ObjectName, target: ObjectName, *, progress: Progress | None = None) -> ObjectInfo:
        """Copy an object: inside the store if possible, otherwise through this machine."""
        info = self.stat(source)
        (here, key), (there, new_key) = self._place(source), self._place(target)
        if here.store is there.store and not (isinstance(here.location, S3Bucket) and info.size > LARGEST_S3_COPY):
            self._ask(here, source.path, lambda: copy_inside(here, key, new_key))
        else:
            meter = TransferMeter(info.size, progress)
            self._put(target, lambda: self._metered(info, meter), info.size, Label())
        return self.stat(target)

    def move(self, source: ObjectName, target: ObjectName) -> None:
        """Move an object. In a folder this is one atomic step; elsewhere it is a copy and a deletion."""
        (here, key), (there, new_key) = self._place(source), self._place(target)
        if here.local and here.store is there.store:
            self._ask(here, source.path, lambda: obstore.rename(here.store, key, new_key), writing=True, once=True)
            return
        self.copy(source, target)
        self.delete(source)

    def _metered(self, info: ObjectInfo, meter: TransferMeter) -> Iterator[bytes]:
        meter.restart()
        with contextlib.closing(self._parts(info, 0)) as parts:
            for part in parts:
                meter.count(part)
                yield part
                meter.tell()

    def local_place(self, name: ObjectName) -> tuple[Path, Path] | None:
        """Return the folder of the zone and the file of the object, or None if the zone is not a folder."""
        shelf, key = self._place(name)
        return (shelf.location.path, shelf.location.path / key) if isinstance(shelf.location, Folder) else None

    # Deleting

    def delete(self, name: ObjectName) -> None:
        """Delete an object. It need not exist."""
        shelf, key = self._place(name)
        self._delete(shelf, key, name.path)

    def delete_prefix(self, zone: Zone, container: str, prefix: str) -> int:
        """Delete all objects in a folder of a container. Returns how many there were. An object that another process
        deletes at the same time may be counted twice."""
        check_path(prefix.rstrip("/"), "prefix")
        shelf = self._shelf(zone, container)
        deleted = 0
        while keys := self._first(shelf, prefix):
            self._delete(shelf, keys, prefix)
            deleted += len(keys)
        shelf.remove_empty_folders(prefix)
        return deleted

    def _delete(self, shelf: ResolvedContainer, keys: str | Sequence[str], path: str) -> None:
        with contextlib.suppress(NotFoundError):
            self._ask(shelf, path, lambda: obstore.delete(shelf.store, keys))

    def _first(self, shelf: ResolvedContainer, prefix: str) -> Sequence[str]:
        objects = chain.from_iterable(self.batches(shelf.zone, shelf.container, prefix))
        return [shelf.key(info.name.path) for info in islice(objects, DELETED_AT_ONCE)]

    # For GDAL

    def gdal_path(self, name: ObjectName) -> str:
        """Return the path for `rasterio.open`, to be used inside `rasterio.Env` with the zone's `gdal_options`."""
        return gdal.gdal_path(self._stores, name)

    def gdal_options(self, zone: Zone, container: str | None = None) -> gdal.GdalOptions:
        """Return GDAL's options for the zone's store. They contain secrets, so never put them into the environment.

        With a managed identity of Azure this may ask for a token, and the options end. Name the container: they are
        good for half a day then, and only to read in it."""
        return gdal.gdal_options(self._stores, self.recipe, zone, container)

    def uses_identity(self, zone: Zone) -> bool:
        """Whether the zone's store is used with a managed identity of Azure."""
        return gdal.uses_identity(self._stores, zone)

    # For operators

    def prepare(self) -> None:
        """Create the zones in the data folder, and remove the remains of dead uploads."""
        self._stores.prepare()

    def missing_folder(self, zone: Zone) -> bool:
        """Whether the zone is in the data folder and has not been created yet."""
        return self._stores.missing_folder(zone)

    def probe(self, zone: Zone) -> str:
        """Test the zone's store. Returns what was done. Containers of Azure cannot be listed, so there only connection
        and credentials are tested; elsewhere an object is written and deleted."""
        location = self._stores.location(zone)
        name = ObjectName(zone, PROBED, uuid4().hex)
        if isinstance(location, AzureAccount):
            self.exists(name)
            return f"{location}, reached"
        self.put_bytes(name, b"")
        self.delete(name)
        return f"{location}, written"

    def _shelf(self, zone: Zone, container: str) -> ResolvedContainer:
        _refuse_in_loop()
        return self._stores.shelf(zone, container)

    def _place(self, name: ObjectName) -> tuple[ResolvedContainer, str]:
        _refuse_in_loop()
        return self._stores.place(name)

    def _ask(
        self,
        shelf: ResolvedContainer,
        path: str,
        work: Callable[[], Result],
        *,
        writing: bool = False,
        once: bool = False,
    ) -> Result:
        with translated(shelf, path, writing=writing):
            return work() if once else persistently(work, shelf, self.recipe.retry_seconds)


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this call would block the event loop; await the method of the storage itself instead")


def _info(name: ObjectName, meta: ObjectMeta) -> ObjectInfo:
    return ObjectInfo(name, meta["size"], meta["e_tag"] or "", meta["last_modified"])


def _nameable(shelf: ResolvedContainer, batch: Sequence[ObjectMeta]) -> list[ObjectInfo]:
    """Return the objects with valid names. Others, which foreign programs may have written, cannot be read through this
    interface, so they are not listed."""
    objects = []
    for meta in batch:
        with contextlib.suppress(InvalidName):
            name = shelf.name(meta["path"])
            if shelf.inside(name.path):
                objects.append(_info(name, meta))
    return objects


def _open_source(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"the file {path} cannot be read: {error.strerror}") from error


def _open_unfinished(path: Path, size: int) -> BinaryIO:
    """Open an unfinished download for appending and lock it. If it is larger than the object, begin again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ConflictError(
            f"another process downloads this object to {path.parent}", remedy="wait until it has finished"
        ) from None
    if file.tell() > size:
        file.truncate(0)
    return file
