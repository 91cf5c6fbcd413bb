"""Small assets on the platform of the console's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.transform import from_bounds

from geomill.client import Client
from tests.acceptance.running import eventually
from tests.console.platform import SharedPlatform

SIDE = 96


def write_heights(path: Path) -> Path:
    """A hill in the middle of a degree: 0 at the corners, 1000 on top."""
    steps = np.linspace(-1, 1, SIDE)
    across, down = np.meshgrid(steps, steps)
    heights = (1000 * np.clip(1 - np.hypot(across, down) / np.sqrt(2), 0, 1)).astype("float32")
    transform = from_bounds(116.0, -9.0, 117.0, -8.0, SIDE, SIDE)
    profile = {"driver": "GTiff", "width": SIDE, "height": SIDE, "count": 1, "dtype": "float32", "nodata": -9999}
    with rasterio.open(path, "w", crs="EPSG:4326", transform=transform, **profile) as file:
        file.write(heights, 1)
    return path


def write_quadrants(path: Path) -> Path:
    """A degree of four equal parts: 1 and 2 in the north, 3 and 4 in the south, from west to east."""
    values = np.kron(np.array([[1, 2], [3, 4]]), np.ones((SIDE // 2, SIDE // 2))).astype("uint8")
    profile = {"driver": "GTiff", "width": SIDE, "height": SIDE, "count": 1, "dtype": "uint8", "nodata": 0}
    with rasterio.open(
        path, "w", crs="EPSG:4326", transform=from_bounds(116.0, -9.0, 117.0, -8.0, SIDE, SIDE), **profile
    ) as file:
        file.write(values, 1)
    return path


def write_fields(path: Path, rows: int = 10) -> Path:
    """A chequered square of fields with an owner and an area."""
    features = [_field(column, row) for row in range(rows) for column in range(rows)]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def _field(column: int, row: int) -> dict[str, Any]:
    west, south = 116 + column / 100, -9 + row / 100
    ring = [[west, south], [west + 0.01, south], [west + 0.01, south + 0.01], [west, south + 0.01], [west, south]]
    properties = {"use": "forest" if (column + row) % 2 else "meadow", "area": round(1 + column * 1.5 + row / 3, 2)}
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def publish(platform: SharedPlatform, file: Path, data_type: str, version: str, title: str | None = None) -> str:
    """Submit a file and wait until it is served. Returns the asset's id. The revision waits for review."""
    with Client(platform.url, platform.key) as client:
        upload = client.upload(file, platform_id="ddh")
        order = {
            "platform_id": "ddh",
            "platform_refs": {"dataset_id": "console", "resource_id": file.stem, "version_id": version},
            "data_type": data_type,
            "container_name": upload.container_name,
            "file_name": upload.file_name,
            "overwrite": True,
            "metadata": {"title": title or f"Test of {file.stem} {version}"},
        }
        accepted = client.assets.submit(order)

        def ended() -> bool:
            status = client.assets.status(accepted.request_id)
            assert status.status != "failed", status.error
            return status.status == "completed"

        eventually(ended, f"the asset of {file.name}", patience=120)
        return str(accepted.asset_id)
