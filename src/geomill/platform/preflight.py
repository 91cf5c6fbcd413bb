"""A look at the source before an order is accepted: is it there, is it what it is said to be?

Only while the store answers quickly; one that does not is no reason to keep a partner waiting, and the workflow looks
again anyhow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from geomill.domain.assets.asset import DataType
from geomill.domain.objectname import ObjectName, Zone, check_container, check_path
from geomill.domain.sniff import HEADER_BYTES, kind_of
from geomill.errors import NotFoundError, Problem, SourceError, UnavailableError
from geomill.storage import Storage

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
AT_ONCE = 8


def source_names(container: str, paths: Sequence[str]) -> list[ObjectName]:
    """The objects in bronze that are meant. Raises `InvalidName`."""
    check_container(container, "container_name")
    return [ObjectName(Zone.BRONZE, container, check_path(path, "file_name")) for path in paths]


async def preflight(storage: Storage, sources: Sequence[ObjectName], data_type: DataType) -> list[str]:
    """Warnings. Raises `SourceError` for a source that cannot be what was ordered."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def look(source: ObjectName) -> None:
        async with slots:
            await _look(storage, source, data_type)

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*map(look, sources))
    except (TimeoutError, UnavailableError) as error:
        log.warning("accepted unseen: %r", error, extra={"action": "preflight"})
        return ["the store did not answer in time: the source is looked at by the workflow"]
    return []


async def _look(storage: Storage, source: ObjectName, data_type: DataType) -> None:
    try:
        info = await storage.stat(source)
        header = await storage.read(source, 0, HEADER_BYTES)
    except NotFoundError:
        raise missing(source) from None
    if info.size == 0:
        raise _refusal(f"the file '{source.path}' is empty", "upload it again")
    kind = kind_of(header)
    if kind is not None and data_type.value not in kind.data_types:
        raise _refusal(
            f"the file '{source.path}' is {kind.name}, which holds no {data_type.value} data",
            f"submit it with data_type={kind.data_types[0]}" if kind.data_types else "submit the data itself",
        )


def missing(source: ObjectName) -> SourceError:
    """The answer for a file that does not exist, and for one of a container that the platform may not read."""
    return _refusal(
        f"there is no file '{source.path}' in the container '{source.container}'", "upload it to bronze first"
    )


def _refusal(message: str, remedy: str) -> SourceError:
    return SourceError(message, remedy=remedy, problems=[Problem("file_name", message, remedy)])
