"""Data for the console's tests: files on disk, and assets that are published through the API."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.transform import from_bounds

from tests.acceptance.running import eventually
from tests.console.platform import SharedPlatform
from tests.integration.vector import sources


def squares(folder: Path, name: str, uses: list[str], **options: Any) -> Path:
    """Write squares side by side, each with an identifier and a use."""
    features = sources.table(sources.squares(len(uses)), parcel=[f"P{place}" for place in range(len(uses))], use=uses)
    path = folder / name
    path.write_bytes(sources.encoded(folder, features, kind="Polygon", **options))
    return path


def shapefile_without_crs(folder: Path, name: str) -> Path:
    parts = sources.shapefile(folder, sources.table(sources.squares(4)), kind="Polygon")
    path = folder / name
    path.write_bytes(sources.zipped({part: data for part, data in parts.items() if not part.endswith(".prj")}))
    return path


def raster(folder: Path, name: str) -> Path:
    path = folder / name
    values = np.add.outer(np.arange(64), np.arange(96)).astype("uint8")
    place = from_bounds(106, -7, 107, -6, 96, 64)
    with rasterio.open(
        path, "w", driver="GTiff", width=96, height=64, count=1, dtype="uint8", crs="EPSG:4326", transform=place
    ) as file:
        file.write(values, 1)
    return path


def publish(platform: SharedPlatform, path: Path, name: str, *, clearance: str | None = None) -> dict[str, Any]:
    """Upload and submit a vector file until it waits for review, and approve it if a clearance is given."""
    with platform.client as client:
        metadata = (
            f"filename {base64.b64encode(path.name.encode()).decode()},platform_id {base64.b64encode(b'ddh').decode()}"
        )
        headers = {
            "Tus-Resumable": "1.0.0",
            "Upload-Length": str(path.stat().st_size),
            "Upload-Metadata": metadata,
            "Content-Type": "application/offset+octet-stream",
        }
        created = client.post("/api/platform/uploads", headers=headers, content=path.read_bytes())
        assert created.status_code == 201, created.text
        upload = client.get(created.headers["Location"]).json()
        submitted = client.post(
            "/api/platform/submit",
            json={
                "platform_refs": {"dataset_id": "review", "resource_id": name, "version_id": "v1"},
                "data_type": "vector",
                "container_name": upload["container_name"],
                "file_name": upload["file_name"],
                "overwrite": True,
                "metadata": {"title": f"Parcels {name}"},
            },
        )
        assert submitted.status_code == 202, submitted.text
        accepted: dict[str, Any] = submitted.json()
        path_of_status = f"/api/platform/status/{accepted['request_id']}"
        eventually(lambda: client.get(path_of_status).json()["status"] == "completed", f"the end of {name}")
        if clearance:
            body = {"asset_id": accepted["asset_id"], "clearance_level": clearance}
            approved = client.post("/api/platform/approve", json=body)
            assert approved.status_code == 200, approved.text
    return accepted


def state(platform: SharedPlatform, asset_id: str) -> dict[str, Any]:
    with platform.client as client:
        asset: dict[str, Any] = client.get(f"/api/assets/{asset_id}").json()
        return asset
