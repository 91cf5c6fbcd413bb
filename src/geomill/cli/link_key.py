"""The key that signs links: as set, or a file in the data folder that whoever needs it first makes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from geomill.domain.access.signed_link import LinkKey
from geomill.errors import SettingsError
from geomill.settings import Settings

FILE = "link.key"


def ensure(settings: Settings) -> LinkKey:
    if settings.serving.link_secret:
        return LinkKey(settings.serving.link_secret.get_secret_value().encode())
    path = settings.database.data / FILE
    try:
        return LinkKey(_read(path) or _make(path))
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read or written: {error}",
            remedy="set GEOMILL_LINK_SECRET, or another data folder",
        ) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes().strip() or None
    except FileNotFoundError:
        return None


def _make(path: Path) -> bytes:
    """It appears whole, and of several who make it at once all get the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_urlsafe(48).encode() + b"\n")
        os.link(fresh, path)
    except FileExistsError:
        pass  # somebody was faster
    finally:
        fresh.unlink(missing_ok=True)
    made = _read(path)
    assert made is not None
    return made
