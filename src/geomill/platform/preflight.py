"""Checks, before a request is accepted, that the source exists and has the stated type.

If the store does not answer in time, the request is accepted with a warning: the partner should not wait, and the
workflow checks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from geomill.domain.assets.asset import DataType
from geomill.domain.objectname import ObjectName, Zone, check_container, check_path
from geomill.domain.sniff import HEADER_BYTES, ZARR_METADATA, ZARR_ROOTS, ZARR_STORE, kind_of
from geomill.errors import NotFoundError, Problem, SourceError, UnavailableError
from geomill.storage import Storage

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
AT_ONCE = 8
NAME_THE_ROOT = "name the store by its file zarr.json or .zgroup, or pack its folder into one ZIP file and submit that"


def source_names(container: str, paths: Sequence[str]) -> list[ObjectName]:
    """Return the source objects in bronze. Raises `InvalidName`."""
    check_container(container, "container_name")
    return [ObjectName(Zone.BRONZE, container, check_path(path, "file_name")) for path in paths]


@dataclass(frozen=True, slots=True)
class SourceCheck:
    sizes: list[int]
    """In bytes; empty if the store did not answer."""
    warnings: list[str]

    @property
    def routed_size(self) -> int:
        """The size by which a workflow is chosen. Several files go to the usual one."""
        return self.sizes[0] if len(self.sizes) == 1 else 0


async def preflight(storage: Storage, sources: Sequence[ObjectName], data_type: DataType) -> SourceCheck:
    """Check the sources. Raises `SourceError` if a source is missing or of another type."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def look(source: ObjectName) -> int:
        async with slots:
            return await _look(storage, source, data_type)

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return SourceCheck(list(await asyncio.gather(*map(look, sources))), [])
    except (TimeoutError, UnavailableError) as error:
        log.warning("accepted without preflight: %r", error, extra={"action": "preflight"})
        return SourceCheck([], ["the store did not answer in time: the workflow will check the source"])


async def _look(storage: Storage, source: ObjectName, data_type: DataType) -> int:
    try:
        info = await storage.stat(source)
        header = await storage.read(source, 0, HEADER_BYTES)
    except NotFoundError:
        raise missing(source) from None
    if info.size == 0:
        raise _refusal(f"the file '{source.path}' is empty", "upload it again")
    if (file := source.path.rpartition("/")[2]) in ZARR_METADATA and file not in ZARR_ROOTS:
        raise _refusal(f"the file '{source.path}' is a part of a Zarr store", NAME_THE_ROOT)
    kind = ZARR_STORE if file in ZARR_ROOTS else kind_of(header)
    if kind is not None and data_type.value not in kind.data_types:
        raise _refusal(
            f"the file '{source.path}' is {kind.name}, which does not hold {data_type.value} data",
            f"submit it with data_type={kind.data_types[0]}" if kind.data_types else "submit the data itself",
        )
    return info.size


def missing(source: ObjectName) -> SourceError:
    """Return the error for a missing file. A file in a container that the platform may not read gets the same
    answer."""
    remedy = NAME_THE_ROOT if source.path.endswith(".zarr") else "upload it to the bronze zone first"
    return _refusal(f"the container '{source.container}' has no file '{source.path}'", remedy)


def _refusal(message: str, remedy: str) -> SourceError:
    return SourceError(message, remedy=remedy, problems=[Problem("file_name", message, remedy)])
