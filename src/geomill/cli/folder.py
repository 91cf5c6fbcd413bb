"""What `geomill up` leaves in the data folder for other commands: the administrator's key and the gateway's address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from geomill.domain.access.api_key import Secret
from geomill.errors import SettingsError

KEY_FILE = "admin.key"
ADDRESS_FILE = "gateway.url"


def read_key(data: Path) -> Secret | None:
    """None if there is no such file, or something else in it."""
    text = _read(data / KEY_FILE)
    return Secret.parse(text) if text else None


def write_key(data: Path, secret: Secret) -> None:
    _write(data / KEY_FILE, secret.reveal(), 0o600)


def read_address(data: Path) -> str | None:
    return _read(data / ADDRESS_FILE)


@contextmanager
def told_address(data: Path, address: str) -> Iterator[None]:
    """Meanwhile the file is there. At the end it goes, unless another `geomill up` has written its own."""
    _write(data / ADDRESS_FILE, address, 0o644)
    try:
        yield
    finally:
        if read_address(data) == address:
            (data / ADDRESS_FILE).unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", remedy="give yourself permission, or delete it"
        ) from None


def _write(path: Path, line: str, mode: int) -> None:
    """All of it or nothing: whoever reads meanwhile sees the old file or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error}", remedy="choose another folder with --data") from error
