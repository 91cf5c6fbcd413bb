"""Collects the objects of all zones: each is listed with its size and hash, and copied if the backup is to contain it.

They are read after the database's snapshot was taken. A revision's files do not change once it is complete, so an
object that the snapshot refers to is there, unless it was deleted meanwhile: then it is listed as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import chain

from geomill.backup.manifest import ObjectLine, ObjectsPart
from geomill.backup.metering import ProgressMeter
from geomill.backup.packing import packing
from geomill.domain.assets.extract import CONTAINER as EXTRACTS
from geomill.domain.assets.inventory import PUBLIC_CONTAINER
from geomill.domain.engine.large import CONTAINER as LARGE_CONTAINER
from geomill.domain.location import Folder, parse_location
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import ConflictError, NotFoundError
from geomill.storage import ObjectInfo, SyncStorage
from geomill.storage.depot import Depot

INDEX = "objects.jsonl.gz"
AT_ONCE = 4
BATCH = 1000
ATTEMPTS = 3
OUR_CONTAINERS = {
    Zone.BRONZE: ("uploads",),
    Zone.SILVER: ("cogs", "vectors", "intermediates", "published", EXTRACTS, LARGE_CONTAINER),
    Zone.EXTERNAL: (PUBLIC_CONTAINER,),
}
"""Containers that geomill writes to, for Azure, where containers cannot be listed."""


class Objects(StrEnum):
    """Which objects a backup contains. All of them are listed in it."""

    AUTO = "auto"
    COPY = "copy"
    LIST = "list"


@dataclass(frozen=True)
class References:
    """The objects that the database's snapshot refers to, and the containers in which others may be."""

    sizes: Mapping[ObjectName, int] = field(default_factory=dict)
    hashes: Mapping[ObjectName, str] = field(default_factory=dict)
    source_containers: Sequence[str] = ()

    def containers(self, zone: Zone) -> set[str]:
        sources = self.source_containers if zone is Zone.BRONZE else ()
        return {*OUR_CONTAINERS[zone], *sources, *(name.container for name in self.sizes if name.zone is zone)}

    def known_hash(self, info: ObjectInfo) -> str | None:
        """Return the hash that the object's job has stored, if the object still has the same size."""
        return self.hashes.get(info.name) if self.sizes.get(info.name) == info.size else None


@dataclass
class Totals:
    objects: int = 0
    object_bytes: int = 0
    copied: int = 0
    missing: int = 0

    def count(self, line: ObjectLine) -> None:
        self.objects += not line.missing
        self.object_bytes += 0 if line.missing else line.size
        self.copied += line.copied
        self.missing += line.missing


@dataclass(frozen=True)
class Collector:
    storage: SyncStorage
    depot: Depot
    references: References
    objects: Objects
    meter: ProgressMeter
    known_hashes: bool = False
    """Whether to skip reading objects that are only listed. Those without a hash in the database then have none."""

    def run(self) -> ObjectsPart:
        present = [info for zone in Zone for info in self._listed(zone)]
        self.meter.begin("objects", sum(info.size for info in present))
        totals = Totals()
        with packing(self.depot, INDEX) as index:
            for line in chain(self._lines(present), self._absent({info.name for info in present})):
                totals.count(line)
                index.write(line.model_dump_json().encode() + b"\n")
        zones = {zone: self.storage.recipe.zones.get(zone, "") for zone in Zone}
        return ObjectsPart(**index.fields, **vars(totals), zones=zones)

    def _listed(self, zone: Zone) -> Iterator[ObjectInfo]:
        if zone in self.storage.recipe.zones:
            for container in self.storage.containers(zone, self.references.containers(zone)):
                yield from self.storage.list(zone, container)

    def _absent(self, present: set[ObjectName]) -> Iterator[ObjectLine]:
        """Yield the objects that the snapshot refers to and that were gone before the zones were listed."""
        for name in sorted(self.references.sizes.keys() - present, key=str):
            yield _line(name, self.references.sizes[name], self.references.hashes.get(name), missing=True)

    def _lines(self, present: Sequence[ObjectInfo]) -> Iterator[ObjectLine]:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="backup") as threads:
            for start in range(0, len(present), BATCH):
                batch = threads.map(self._take, present[start : start + BATCH])
                yield from (line for line in batch if line is not None)

    def _take(self, info: ObjectInfo) -> ObjectLine | None:
        """Copy or list an object. Returns None if it was deleted and nothing refers to it."""
        work = self._copy if self._is_copied(info.name.zone) else self._look
        for attempt in range(ATTEMPTS):
            try:
                return work(self.storage.stat(info.name) if attempt else info)
            except NotFoundError:
                break
            except ConflictError:
                continue  # it was replaced while it was read
        if info.name in self.references.sizes:
            return _line(info.name, info.size, self.references.hashes.get(info.name), missing=True)
        return None

    def _is_copied(self, zone: Zone) -> bool:
        if self.objects is not Objects.AUTO:
            return self.objects is Objects.COPY
        return isinstance(parse_location(self.storage.recipe.zones[zone]), Folder)

    def _copy(self, info: ObjectInfo) -> ObjectLine:
        line = _line(info.name, info.size, None)
        with self.depot.writing(line.place) as sink:
            size, digest = self._read(info, sink.write)
        return line.model_copy(update={"size": size, "sha256": digest, "etag": info.etag, "copied": True})

    def _look(self, info: ObjectInfo) -> ObjectLine:
        digest = self.references.known_hash(info)
        if digest is None and not self.known_hashes:
            return _line(info.name, *self._read(info, lambda _: None))
        self.meter.advance(info.size)
        return _line(info.name, info.size, digest)

    def _read(self, info: ObjectInfo, write: Callable[[bytes], object]) -> tuple[int, str]:
        size, digest = 0, sha256()
        for data in self.storage.stream(info.name):
            write(data)
            digest.update(data)
            size += len(data)
            self.meter.advance(len(data))
        return size, digest.hexdigest()


def _line(name: ObjectName, size: int, digest: str | None, *, missing: bool = False) -> ObjectLine:
    return ObjectLine(
        zone=name.zone, container=name.container, path=name.path, size=size, sha256=digest, missing=missing
    )
