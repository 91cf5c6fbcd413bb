"""A file of a backup: compressed, counted and hashed when it is written, checked when it is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from geomill.backup.manifest import BackupPart
from geomill.errors import BackupInvalid, NotFoundError
from geomill.storage.depot import Depot, Sink

BUFFER = 1024 * 1024
CHUNK = 4 * 1024 * 1024
LONGEST_LINE = 100_000
_GZIP = 31
"""zlib's number for the format of gzip."""
FAST = 1
"""The level of compression. The database's snapshot stays open meanwhile, so speed counts for more than size."""


class Packer:
    def __init__(self, path: str, sink: Sink) -> None:
        self._path = path
        self._sink = sink
        self._buffer = bytearray()
        self._compressor = zlib.compressobj(FAST, wbits=_GZIP)
        self._hash = sha256()
        self._size = self._packed = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer += data
        if len(self._buffer) >= BUFFER:
            self._flush()

    def finish(self) -> dict[str, Any]:
        """Write the rest, and return the fields of a `BackupPart`."""
        self._flush()
        self._put(self._compressor.flush())
        return {"path": self._path, "size": self._size, "packed": self._packed, "sha256": self._hash.hexdigest()}

    def _flush(self) -> None:
        self._size += len(self._buffer)
        self._put(self._compressor.compress(bytes(self._buffer)))
        self._buffer.clear()

    def _put(self, data: bytes) -> None:
        if data:
            self._hash.update(data)
            self._packed += len(data)
            self._sink.write(data)


@dataclass
class Packed:
    """A file that is being written. `fields` are those of a `BackupPart`, once the block has ended."""

    packer: Packer
    fields: dict[str, Any]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.packer.write(data)


@contextmanager
def packing(depot: Depot, path: str) -> Iterator[Packed]:
    with depot.writing(path) as sink:
        packed = Packed(Packer(path, sink), {})
        yield packed
        packed.fields = packed.packer.finish()


def packed_bytes(depot: Depot, part: BackupPart) -> Iterator[bytes]:
    """Yield the packed bytes of a file. Raises `BackupInvalid`, at the end at the latest, if they are wrong."""
    digest, size = sha256(), 0
    for data in present(depot, part.path):
        digest.update(data)
        size += len(data)
        if size > part.packed:
            break
        yield data
    if size != part.packed:
        raise BackupInvalid(f"'{part.path}' does not have the {part.packed:,} bytes that the manifest names")
    if digest.hexdigest() != part.sha256:
        raise BackupInvalid(f"'{part.path}' was changed: it does not have the hash that the manifest names")


def unpacked(depot: Depot, part: BackupPart) -> Iterator[bytes]:
    """Yield the unpacked bytes in bounded pieces. A file that unpacks to more than its size raises `BackupInvalid`."""
    stream = zlib.decompressobj(wbits=_GZIP)
    size = 0
    try:
        for data in packed_bytes(depot, part):
            rest = data
            while rest:
                piece = stream.decompress(rest, CHUNK)
                rest = stream.unconsumed_tail
                size += len(piece)
                if size > part.size:
                    raise BackupInvalid(
                        f"'{part.path}' holds more than the {part.size:,} bytes that the manifest names"
                    )
                if piece:
                    yield piece
    except zlib.error:
        raise BackupInvalid(f"'{part.path}' is damaged: it cannot be decompressed") from None
    if size != part.size or not stream.eof:
        raise BackupInvalid(f"'{part.path}' is not whole: it holds {size:,} of {part.size:,} bytes")


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > LONGEST_LINE:
            raise BackupInvalid(f"there is a line that is longer than {LONGEST_LINE:,} bytes")
    if rest:
        yield rest


def present(depot: Depot, path: str) -> Iterator[bytes]:
    """Yield the bytes of a file, as `depot.reading` does. Raises `BackupInvalid` if the file is missing."""
    try:
        yield from depot.reading(path)
    except NotFoundError:
        raise BackupInvalid(f"'{path}' is missing from the backup") from None
