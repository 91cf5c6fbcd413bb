"""Checks that a backup is complete and unchanged: every file has the bytes that the manifest names."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice

from pydantic import ValidationError

from geomill.backup import manifest as manifests
from geomill.backup.manifest import BackupPart, Manifest, ObjectLine
from geomill.backup.metering import ProgressMeter
from geomill.backup.packing import lines, present, unpacked
from geomill.errors import BackupInvalid, NotFoundError
from geomill.storage.depot import Depot

AT_ONCE = 4
BATCH = 1000


@dataclass
class Verdict:
    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    """Files that the manifest does not name. They are harmless."""

    @property
    def sound(self) -> bool:
        return not self.problems


def read_manifest(depot: Depot, digest: str | None = None) -> Manifest:
    """Read the manifest. Raises `BackupInvalid` if it is missing or not valid. `digest` is the one that the backup
    printed when it was taken."""
    data = b""
    try:
        for piece in depot.reading(manifests.PATH):
            data += piece
            if len(data) > manifests.LARGEST:
                raise BackupInvalid(f"the manifest in {depot.place} is larger than {manifests.LARGEST:,} bytes")
    except NotFoundError:
        raise BackupInvalid(
            f"there is no backup in {depot.place}: it has no {manifests.PATH}",
            remedy="check the place; a backup that broke off has no manifest and cannot be used",
        ) from None
    manifest = Manifest.from_bytes(data)
    if digest is not None and digest != manifest.digest:
        raise BackupInvalid(f"the backup in {depot.place} is not the one with the SHA-256 {digest}")
    return manifest


def object_lines(depot: Depot, manifest: Manifest) -> Iterator[ObjectLine]:
    for text in lines(unpacked(depot, manifest.objects)):
        try:
            yield ObjectLine.model_validate_json(text)
        except ValidationError as error:
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise BackupInvalid(f"a line of '{manifest.objects.path}' cannot be used: {reason}") from None


def verify(depot: Depot, manifest: Manifest, meter: ProgressMeter) -> Verdict:
    """Read and check every file of the backup."""
    verdict = Verdict(manifest)
    expected = {manifests.PATH}
    meter.begin("files", sum(part.size for part in manifest.parts))
    for part in manifest.parts:
        expected.add(part.path)
        verdict.problems += _wrong_part(depot, part, meter)
    meter.begin("objects", manifest.objects.object_bytes)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="verify") as threads:
        try:
            copied = (line for line in object_lines(depot, manifest) if line.copied)
            while batch := list(islice(copied, BATCH)):
                expected.update(line.place for line in batch)
                checks = threads.map(lambda line: _wrong_object(depot, line, meter), batch)
                verdict.problems += [problem for problem in checks if problem]
        except BackupInvalid:
            pass  # the index is one of the parts: its problem is reported above
    verdict.extra = sorted(set(depot.paths()) - expected)
    return verdict


def _wrong_part(depot: Depot, part: BackupPart, meter: ProgressMeter) -> list[str]:
    try:
        for piece in unpacked(depot, part):
            meter.advance(len(piece))
    except BackupInvalid as error:
        return [error.message]
    return []


def _wrong_object(depot: Depot, line: ObjectLine, meter: ProgressMeter) -> str | None:
    try:
        for data in checked_object(depot, line):
            meter.advance(len(data))
    except BackupInvalid as error:
        return error.message
    return None


def checked_object(depot: Depot, line: ObjectLine) -> Iterator[bytes]:
    """Yield the bytes of an object in the backup. Raises `BackupInvalid`, at the end at the latest, if they differ."""
    size, digest = 0, sha256()
    for data in present(depot, line.place):
        size += len(data)
        digest.update(data)
        if size > line.size:
            break
        yield data
    if size != line.size or digest.hexdigest() != line.sha256:
        raise BackupInvalid(f"'{line.place}' was changed: it does not have the size or hash that the index names")
