"""Facts about objects and transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from geomill.domain.objectname import ObjectName

Progress = Callable[[int, int], None]
"""Called with the transferred and the total number of bytes, in the event loop or thread of the caller."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object in a store. `etag` changes with the content; its format depends on the store."""

    name: ObjectName
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """A transferred object with the SHA-256 of its bytes, in hexadecimal."""

    name: ObjectName
    size: int
    sha256: str
