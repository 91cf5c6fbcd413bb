"""Where a job keeps what it needs only on its way."""

from __future__ import annotations

import tempfile
from pathlib import Path

from geomill.raster.grid import Tile
from geomill.raster.outputs import INTERMEDIATE_CONTAINER
from geomill.sdk import ObjectName, Zone


def folder_of(job_id: str) -> str:
    """The end of a job id is its chance part; its beginning, the time, is shared by jobs of the same minute."""
    return job_id.replace("-", "")[:8] + "-" + job_id.replace("-", "")[-8:]


def intermediate(prefix: str, tile: Tile) -> ObjectName:
    return ObjectName(Zone.SILVER, INTERMEDIATE_CONTAINER, f"{prefix}/{tile.tile_id}.tif")


def mount() -> Path:
    """On this machine, for copies of sources."""
    return Path(tempfile.gettempdir()) / "geomill-mount"


def mounted(job_id: str, file_name: str) -> Path:
    return mount() / folder_of(job_id) / file_name.rpartition("/")[2]
