"""STAC documents stored beside the data. The job's outputs also carry an asset's item to the catalogue."""

from __future__ import annotations

import json
from typing import Any

import geomill
from geomill.datasets.outputs import GEOJSON_TYPE, JSON_TYPE, FileEntry
from geomill.sdk import ObjectName, Storage, Zone

ID_PATTERN = r"^[^/:\s]{1,200}$"
SOFTWARE = f"geomill {geomill.__version__}"


async def put_document(storage: Storage, container: str, path: str, document: dict[str, Any], role: str) -> FileEntry:
    media_type = GEOJSON_TYPE if document.get("type") in ("Feature", "FeatureCollection") else JSON_TYPE
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    stored = await storage.put_bytes(ObjectName(Zone.SILVER, container, path), data, media_type=media_type)
    return FileEntry.of(stored, media_type, role)
