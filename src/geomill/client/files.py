"""Files to upload. Both clients share it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from geomill.errors import InputError

UploadProgress = Callable[[int, int], None]
"""Called with the sent and the total number of bytes. The first may go back when a connection was lost."""
READ_AT_ONCE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A local file, with its size and checksum as they are before it is sent."""

    path: Path
    size: int
    sha256: str


def look_at(path: Path) -> SourceFile:
    """Read a file once, for its checksum. Raises `InputError` if there is no such file."""
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            return SourceFile(path, content.tell(), digest)
    except OSError as error:
        raise InputError(
            f"the file {path} cannot be read: {error.strerror}", remedy="give the path of a local file"
        ) from None


def metadata(values: Mapping[str, str | None]) -> str:
    """Return metadata as tus has it in a header. Values that are None are left out."""
    pairs = [(name, value) for name, value in values.items() if value is not None]
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in pairs)
