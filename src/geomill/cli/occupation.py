"""Ensures that only one `geomill up` runs on a data folder. The first takes a lock; the second reports its holder.

The kernel releases the lock when the process ends, however it ends. The content of the file is for people.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from geomill.errors import ConflictError, SettingsError

LOCK_FILE = "up.lock"
LONGEST = 1_000


class Occupation:
    """The lock of this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._since = datetime.now(UTC).isoformat(timespec="seconds")

    def tell(self, address: str | None = None) -> None:
        """Write this process's id, start time and address into the lock file."""
        text = json.dumps({"pid": os.getpid(), "since": self._since, "url": address}) + "\n"
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)


@contextmanager
def occupied(data: Path) -> Iterator[Occupation]:
    """Lock the data folder for the block. Raises `ConflictError` if another process holds the lock."""
    path = data / LOCK_FILE
    try:
        if not data.is_dir():
            data.mkdir(parents=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _unusable(data, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"'geomill up' already runs on the data folder {data}{_describe_holder(descriptor)}",
                remedy="use that one, stop it, or choose another folder with --data",
            ) from None
        occupation = Occupation(descriptor)
        try:
            occupation.tell()
        except OSError as error:
            raise _unusable(data, error) from error
        yield occupation
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _describe_holder(descriptor: int) -> str:
    """Describe the holder from the lock file. Returns an empty text if the file is not written yet."""
    try:
        holder = json.loads(os.pread(descriptor, LONGEST, 0))
        since = datetime.fromisoformat(holder["since"])
        url = f", at {holder['url']}" if holder["url"] else ""
        return f": process {int(holder['pid'])}, since {since:%Y-%m-%d %H:%M:%S} UTC{url}"
    except (ValueError, KeyError, TypeError):
        return ""


def _unusable(data: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"the data folder {data} cannot be written: {error.strerror}",
        remedy="give yourself write permission, free some space, or choose another folder with --data",
    )
