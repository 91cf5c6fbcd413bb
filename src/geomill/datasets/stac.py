"""Parts of STAC items and collections that rasters and layers share, as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geomill.datasets.times import Times

VERSION = "1.1.0"
EXTENSIONS = "https://stac-extensions.github.io"
PROJECTION = f"{EXTENSIONS}/projection/v2.0.0/schema.json"
FILE = f"{EXTENSIONS}/file/v2.1.0/schema.json"
PROCESSING = f"{EXTENSIONS}/processing/v1.2.0/schema.json"


def when(times: Times) -> dict[str, Any]:
    properties: dict[str, Any] = {"datetime": times.datetime, "geomill:datetime_from": times.known_from}
    if times.datetime is None:
        properties |= {"start_datetime": times.start_datetime, "end_datetime": times.end_datetime}
    return properties


def provenance(
    lineage: str, software: str, workflow_id: str | None, workflow_version: int | None, job_id: str | None
) -> dict[str, Any]:
    name, _, version = software.partition(" ")
    properties: dict[str, Any] = {"processing:lineage": lineage, "processing:software": {name: version}}
    if workflow_id and workflow_version:
        properties |= {"processing:version": f"{workflow_id} {workflow_version}", "geomill:workflow": workflow_id}
    return properties | ({"geomill:job_id": job_id} if job_id else {})


def build_collection(collection_id: str, bbox: Sequence[float], times: Times, description: str) -> dict[str, Any]:
    """Return a collection with the extents of one item. Registering it widens the extents of an existing collection."""
    west, south, east, north = bbox
    start, end = times.datetime or times.start_datetime, times.datetime or times.end_datetime
    return {
        "type": "Collection",
        "stac_version": VERSION,
        "id": collection_id,
        "description": description,
        "license": "other",
        "extent": {"spatial": {"bbox": [[west, south, east, north]]}, "temporal": {"interval": [[start, end]]}},
        "links": [],
    }
