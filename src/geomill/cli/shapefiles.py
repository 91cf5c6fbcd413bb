"""Packs a shapefile for an upload: a source is one file, and a shapefile is several."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg", ".qml", ".sld")
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every part in the ZIP, so that the same shapefile always gives the same ZIP."""


@contextmanager
def as_one_file(file: Path) -> Iterator[Path]:
    """Yield the file itself, or of a shapefile a temporary ZIP with its parts."""
    parts = _parts(file) if file.suffix.lower() == ".shp" else []
    if len(parts) < 2:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="geomill-") as folder:
        archive = Path(folder) / f"{file.stem}.zip"
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            for part in parts:
                entry = ZipInfo(part.name, EARLIEST)
                entry.compress_type = ZIP_DEFLATED
                with part.open("rb") as source, packed.open(entry, "w", force_zip64=True) as target:
                    while data := source.read(1024 * 1024):
                        target.write(data)
        yield archive


def _parts(file: Path) -> list[Path]:
    if not file.is_file():
        return []
    neighbours = (path for path in file.parent.iterdir() if path.stem == file.stem and path.suffix.lower() in PARTS)
    return sorted(path for path in neighbours if path.is_file())
