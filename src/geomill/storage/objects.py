"""What is told about objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from geomill.domain.objectname import ObjectName

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all, in the loop or thread of whoever waits."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """`etag` changes with the content; what it is made of is the store's affair."""

    name: ObjectName
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """What went in or came out, with the SHA-256 of exactly these bytes, in hexadecimal."""

    name: ObjectName
    size: int
    sha256: str
