"""Zarr stores in ZIP files.

GDAL never sees the store itself. The chunks that are needed are copied to a small store of version 2 whose metadata are
written here, so GDAL reads only what was checked: no consolidated metadata, no references, no names from the file.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from geomill.datasets.refusals import refused
from geomill.raster.opening import GIGABYTE, LARGEST_BLOCK
from geomill.raster.zarr_metadata import ZarrArray, parsed_array
from geomill.sdk import ObjectName

ZIP = b"PK\x03\x04"
MOST_CHUNKS = 200_000
"""Chunks of one layer, and files in the store."""
LARGEST_DIRECTORY = 32 * 1024 * 1024
LARGEST_METADATA, LARGEST_METADATA_TOGETHER = 1024 * 1024, 16 * 1024 * 1024
MOST_ARRAYS = 500
BOMB_RATIO = 200
"""Chunks are compressed already, so a ZIP file of them unpacks to little more than its own size."""
_ENCRYPTED = 0x1
_END, _END_BYTES = b"PK\x05\x06", 22 + 65_535
_METADATA = ("zarr.json", ".zarray")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_ROOTS = ("zarr.json", ".zgroup", ".zmetadata")


@dataclass(frozen=True)
class LayerCopy:
    chunks: int
    missing: int
    has_nodata: bool
    """Whether GDAL knows the nodata value."""


@dataclass
class ZarrStore:
    archive: zipfile.ZipFile
    name: ObjectName
    root: str
    """The folder of the store in the ZIP file, with a slash at its end, or nothing."""
    members: dict[str, zipfile.ZipInfo]
    packed: int
    """The size of the ZIP file."""

    @cached_property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The metadata of all arrays, by their path in the store."""
        paths = [path for path in self.members if path.startswith(self.root) and path.rpartition("/")[2] in _METADATA]
        metadata = sum(self.members[path].file_size for path in paths)
        if len(paths) > MOST_ARRAYS or metadata > LARGEST_METADATA_TOGETHER:
            raise refused(
                "too_large",
                f"'{self.name}' has {len(paths):,} arrays with {metadata:,} bytes of metadata; the maximum is "
                f"{MOST_ARRAYS} with {LARGEST_METADATA_TOGETHER:,}: write fewer to the store",
            )
        documents = {path[len(self.root) :].rpartition("/")[0]: self._json(path) for path in paths}
        return {path: node for path, node in documents.items() if path and node.get("node_type", "array") == "array"}

    def attributes(self, path: str) -> dict[str, Any]:
        node = self.nodes.get(path, {})
        if node.get("zarr_format") != 2:
            attributes = node.get("attributes")
            return attributes if isinstance(attributes, dict) else {}
        member = f"{self.root}{path}/.zattrs"
        return self._json(member) if member in self.members else {}

    def array(self, path: str) -> ZarrArray:
        """Return the layout of an array. Raises a refusal if it cannot be read."""
        array = parsed_array(self.nodes[path], self.attributes(path), self.name, path)
        if array.chunk_bytes > LARGEST_BLOCK:
            raise refused(
                "block_too_large",
                f"one chunk of '{path[:60]}' in '{self.name}' has {array.chunk_bytes:,} bytes uncompressed, "
                f"more than {LARGEST_BLOCK:,}: write it with smaller chunks",
            )
        return array

    def copy_layer(
        self, path: str, array: ZarrArray, index: tuple[int, ...], target: Path, **attributes: Any
    ) -> LayerCopy:
        """Copy the chunks of one layer, which `index` names along the first dimensions, and write their metadata."""
        place = tuple(step // chunk for step, chunk in zip(index, array.chunks, strict=False))
        keys = {key: member for key, member in self._chunks(path, array).items() if key[: len(place)] == place}
        count = math.prod(array.grid[len(place) :])
        self._check_chunks(keys, array, count)
        fill, applied = self._fill(path, array, missing=len(keys) < count)
        target.mkdir()
        for key, member in keys.items():
            with self._opened(member) as packed, (target / ".".join(map(str, key))).open("wb") as chunk:
                shutil.copyfileobj(packed, chunk)
        (target / ".zarray").write_text(json.dumps(_version_2(array, fill)))
        (target / ".zattrs").write_text(json.dumps(attributes))
        return LayerCopy(count, count - len(keys), applied)

    def _fill(self, path: str, array: ZarrArray, *, missing: bool) -> tuple[float | None, bool]:
        """Return the fill value for GDAL, and whether it is nodata too. GDAL takes every fill value for nodata."""
        if not missing or array.fill == array.nodata or _both_nan(array.fill, array.nodata):
            return array.nodata, True
        if array.fill in (None, 0):
            return None, array.nodata is None
        raise refused(
            "unsupported_format",
            f"'{self.name}' has no chunks for parts of '{path[:60]}', whose value there is {array.fill}, "
            "which is not nodata: write all chunks",
        )

    def _chunks(self, path: str, array: ZarrArray) -> dict[tuple[int, ...], zipfile.ZipInfo]:
        start = f"{self.root}{path}/{array.prefix}"
        chunks = {}
        for member in self.members:
            if member.startswith(start):
                numbers = member[len(start) :].split(array.separator)
                if len(numbers) == len(array.shape) and all(map(_NUMBER.fullmatch, numbers)):
                    chunks[tuple(map(int, numbers))] = self.members[member]
        return {
            key: member for key, member in chunks.items() if all(i < n for i, n in zip(key, array.grid, strict=True))
        }

    def _check_chunks(self, keys: dict[tuple[int, ...], zipfile.ZipInfo], array: ZarrArray, count: int) -> None:
        unpacked = sum(member.file_size for member in keys.values())
        largest = max((member.file_size for member in keys.values()), default=0)
        if count > MOST_CHUNKS:
            raise refused(
                "too_large", f"'{self.name}' has {count:,} chunks in one layer; the maximum is {MOST_CHUNKS:,}"
            )
        if largest > array.chunk_bytes * 1.01 + 4096 or (unpacked > GIGABYTE and unpacked > BOMB_RATIO * self.packed):
            raise refused("unsafe_archive", f"'{self.name}' has chunks that unpack to more than their array can hold")

    def _json(self, path: str) -> dict[str, Any]:
        member = self.members[path]
        if member.file_size > LARGEST_METADATA:
            if path == f"{self.root}zarr.json":  # the group, with consolidated metadata, which are not used
                return {"node_type": "group"}
            raise refused("too_large", f"the metadata '{path[:120]}' in '{self.name}' are too large")
        try:
            with self._opened(member) as packed:
                document = json.loads(packed.read())
        except (ValueError, RecursionError) as error:
            raise refused("unreadable", f"the metadata '{path[:120]}' in '{self.name}' are not JSON") from error
        return document if isinstance(document, dict) else {}

    def _opened(self, member: zipfile.ZipInfo) -> IO[bytes]:
        """Open a member. zipfile returns no more than the declared size and compares the checksum."""
        if member.flag_bits & _ENCRYPTED:
            raise refused("unsafe_archive", f"'{self.name}' has a password: pack it without one")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused("unsafe_archive", f"'{self.name}' has an unusual compression: pack it with zip -0")
        return self.archive.open(member)


@contextmanager
def opened_store(path: Path, name: ObjectName) -> Iterator[ZarrStore]:
    """Open the ZIP file. Raises a refusal if it is no Zarr store."""
    try:
        _check_directory(path, name)
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
            yield ZarrStore(archive, name, _root(members, name), members, path.stat().st_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, UnicodeDecodeError) as error:
        raise refused("unreadable", f"'{name}' is a damaged or unknown ZIP file") from error


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
    if count > MOST_CHUNKS or size > LARGEST_DIRECTORY:
        raise refused(
            "too_large", f"'{name}' holds {count:,} files; the maximum is {MOST_CHUNKS:,}: write larger chunks"
        )


def _root(members: dict[str, zipfile.ZipInfo], name: ObjectName) -> str:
    roots = {path.rpartition("/")[0] for path in members if path.rpartition("/")[2] in _ROOTS}
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


def _both_nan(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and math.isnan(first) and math.isnan(second)


def _version_2(array: ZarrArray, fill: float | None) -> dict[str, Any]:
    """Return metadata of version 2 for GDAL."""
    text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(fill, fill) if fill is not None else None
    return {
        "zarr_format": 2,
        "shape": array.shape,
        "chunks": array.chunks,
        "dtype": array.dtype,
        "compressor": {"id": array.compressor} if array.compressor else None,
        "fill_value": "NaN" if isinstance(fill, float) and math.isnan(fill) else text,
        "order": array.order,
        "filters": None,
        "dimension_separator": ".",
    }
