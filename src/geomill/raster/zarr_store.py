"""Zarr stores.

GDAL never sees the store itself. The chunks that are needed are copied to a small store of version 2 whose metadata are
written here, so GDAL reads only what was checked: no consolidated metadata, no references, no names from the file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from geomill.datasets.refusals import refused
from geomill.raster.opening import GIGABYTE, LARGEST_BLOCK
from geomill.raster.zarr_files import ZarrFiles
from geomill.raster.zarr_metadata import ZarrArray, parsed_array
from geomill.raster.zarr_shards import copy_chunks
from geomill.sdk import ObjectName

MOST_CHUNKS = 200_000
"""Chunks of one layer."""
LARGEST_METADATA, LARGEST_METADATA_TOGETHER = 1024 * 1024, 16 * 1024 * 1024
MOST_ARRAYS = 500
BOMB_RATIO = 200
"""Chunks are compressed already, so a ZIP file of them unpacks to little more than its own size."""
_METADATA = ("zarr.json", ".zarray")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)


@dataclass(frozen=True)
class LayerCopy:
    chunks: int
    missing: int
    has_nodata: bool
    """Whether GDAL knows the nodata value."""


@dataclass
class ZarrStore:
    files: ZarrFiles
    name: ObjectName

    @cached_property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The metadata of all arrays, by their path in the store."""
        paths = [path for path in self.files.sizes if path.rpartition("/")[2] in _METADATA]
        metadata = sum(self.files.sizes[path] for path in paths)
        if len(paths) > MOST_ARRAYS or metadata > LARGEST_METADATA_TOGETHER:
            raise refused(
                "too_large",
                f"'{self.name}' has {len(paths):,} arrays with {metadata:,} bytes of metadata; the maximum is "
                f"{MOST_ARRAYS} with {LARGEST_METADATA_TOGETHER:,}: write fewer to the store",
            )
        documents = {path.rpartition("/")[0]: self._json(path) for path in paths}
        return {path: node for path, node in documents.items() if path and node.get("node_type", "array") == "array"}

    def attributes(self, path: str) -> dict[str, Any]:
        node = self.nodes.get(path, {})
        if node.get("zarr_format") != 2:
            attributes = node.get("attributes")
            return attributes if isinstance(attributes, dict) else {}
        beside = f"{path}/.zattrs"
        return self._json(beside) if beside in self.files.sizes else {}

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
        count = math.prod(array.grid[len(place) :])
        if count > MOST_CHUNKS:
            raise refused(
                "too_large", f"'{self.name}' has {count:,} chunks in one layer; the maximum is {MOST_CHUNKS:,}"
            )
        target.mkdir()
        copy = self._copy_shards if array.shards else self._copy_chunks
        copied = copy(path, array, place, target)
        fill, applied = self._fill(path, array, missing=copied < count)
        (target / ".zarray").write_text(json.dumps(_version_2(array, fill)))
        (target / ".zattrs").write_text(json.dumps(attributes))
        return LayerCopy(count, count - copied, applied)

    def _copy_chunks(self, path: str, array: ZarrArray, place: tuple[int, ...], target: Path) -> int:
        keys = {key: file for key, file in self._stored(path, array).items() if key[: len(place)] == place}
        self._check_sizes(keys.values(), array.chunk_bytes)
        for key, file in keys.items():
            self.files.copy(file, target / ".".join(map(str, key)))
        return len(keys)

    def _copy_shards(self, path: str, array: ZarrArray, place: tuple[int, ...], target: Path) -> int:
        """Copy the chunks of the layer out of their shards, one shard at a time."""
        assert array.shards is not None
        sharding = array.shards
        outer = tuple(number // per for number, per in zip(place, sharding.chunks_in, strict=False))
        keys = {key: file for key, file in self._stored(path, array).items() if key[: len(outer)] == outer}
        self._check_sizes(keys.values(), array.chunk_bytes * sharding.count + sharding.index_bytes)
        copied = 0
        for key, file in keys.items():
            draft = target / "shard"
            self.files.copy(file, draft)
            copied += copy_chunks(draft, array, key, place, target, self.name)
            draft.unlink()
        return copied

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

    def _stored(self, path: str, array: ZarrArray) -> dict[tuple[int, ...], str]:
        """Return the files of the array's chunks, or of its shards, by their numbers."""
        start, grid = f"{path}/{array.prefix}", array.stored_grid
        files = {}
        for file in self.files.sizes:
            if file.startswith(start):
                numbers = file[len(start) :].split(array.separator)
                if len(numbers) == len(array.shape) and all(map(_NUMBER.fullmatch, numbers)):
                    files[tuple(map(int, numbers))] = file
        return {key: file for key, file in files.items() if all(i < n for i, n in zip(key, grid, strict=True))}

    def _check_sizes(self, files: Iterable[str], expected: int) -> None:
        sizes = [self.files.sizes[file] for file in files]
        unpacked, largest = sum(sizes), max(sizes, default=0)
        if largest > expected * 1.01 + 4096 or (unpacked > GIGABYTE and unpacked > BOMB_RATIO * self.files.packed):
            raise refused("unsafe_archive", f"'{self.name}' has chunks that unpack to more than their array can hold")

    def _json(self, path: str) -> dict[str, Any]:
        if self.files.sizes[path] > LARGEST_METADATA:
            if path == "zarr.json":  # the group, with consolidated metadata, which are not used
                return {"node_type": "group"}
            raise refused("too_large", f"the metadata '{path[:120]}' in '{self.name}' are too large")
        try:
            document = json.loads(self.files.read(path))
        except (ValueError, RecursionError) as error:
            raise refused("unreadable", f"the metadata '{path[:120]}' in '{self.name}' are not JSON") from error
        return document if isinstance(document, dict) else {}


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
