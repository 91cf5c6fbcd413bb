"""Shards of Zarr version 3: files that hold many chunks and, at their end or start, an index of where each lies.

The index is checked against the file before anything is copied. Chunks keep their compression.
"""

from __future__ import annotations

import itertools
import struct
from functools import cache
from pathlib import Path
from typing import BinaryIO

from geomill.datasets.refusals import refused
from geomill.raster.zarr_metadata import ZarrArray
from geomill.sdk import ObjectName

_MISSING = 2**64 - 1
_POLYNOMIAL = 0x82F63B78


def copy_chunks(
    shard: Path, array: ZarrArray, key: tuple[int, ...], place: tuple[int, ...], target: Path, name: ObjectName
) -> int:
    """Copy the chunks of a layer out of a shard. `place` has the numbers of the layer's chunks along the first
    dimensions. Returns how many were stored."""
    sharding = array.shards
    assert sharding is not None
    copied = 0
    size = shard.stat().st_size
    with shard.open("rb") as file:
        index = _index(file, size, array, name)
        for number, inner in enumerate(itertools.product(*map(range, sharding.chunks_in))):
            chunk = tuple(outer * per + own for outer, per, own in zip(key, sharding.chunks_in, inner, strict=True))
            start, length = index[2 * number], index[2 * number + 1]
            outside = any(own >= count for own, count in zip(chunk, array.grid, strict=True))
            if chunk[: len(place)] != place or outside or (start, length) == (_MISSING, _MISSING):
                continue
            _copy(file, size, start, length, target / ".".join(map(str, chunk)), array, name)
            copied += 1
    return copied


def _index(file: BinaryIO, size: int, array: ZarrArray, name: ObjectName) -> tuple[int, ...]:
    sharding = array.shards
    assert sharding is not None
    length = sharding.index_bytes
    if size < length:
        raise _damaged(name)
    file.seek(size - length if sharding.index_at_end else 0)
    packed = file.read(length)
    if sharding.checksum:
        packed, checksum = packed[:-4], packed[-4:]
        if struct.unpack("<I", checksum)[0] != crc32c(packed):
            raise _damaged(name)
    return struct.unpack(f"<{2 * sharding.count}Q", packed)


def _copy(file: BinaryIO, size: int, start: int, length: int, target: Path, array: ZarrArray, name: ObjectName) -> None:
    if length > array.chunk_bytes * 1.01 + 4096 or start + length > size:
        raise _damaged(name)
    file.seek(start)
    target.write_bytes(file.read(length))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of RFC 3720."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    values = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        values.append(value)
    return tuple(values)


def _damaged(name: ObjectName) -> Exception:
    return refused("unreadable", f"'{name}' has a damaged shard: write the store again")
