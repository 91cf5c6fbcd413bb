"""The free space on the local disks that hold data."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from geomill.domain.location import Folder, parse_location
from geomill.storage.recipe import StorageRecipe

DATA = "data"
"""The name of the data folder, which also contains the embedded database."""


@dataclass(frozen=True, slots=True)
class Space:
    """The space of a disk. `place` is a zone or `data`, because the path itself is confidential."""

    place: str
    free_bytes: int
    total_bytes: int


def spaces(recipe: StorageRecipe) -> list[Space]:
    """Return the space for the data folder and for each zone in a folder. Disks that cannot be read are left out."""
    locations = {place: parse_location(location) for place, location in recipe.zones.items()}
    folders = {place: location.path for place, location in locations.items() if isinstance(location, Folder)}
    if recipe.data:
        folders = {DATA: Path(recipe.data), **folders}
    measured: list[Space] = []
    for place, folder in folders.items():
        try:
            usage = shutil.disk_usage(existing(folder))
        except OSError:
            continue
        measured.append(Space(str(place), usage.free, usage.total))
    return measured


def existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    absolute = folder.absolute()
    return next(place for place in (absolute, *absolute.parents) if place.exists())


def readable(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 100_000_000 else f"{size / 1e6:.0f} MB"
