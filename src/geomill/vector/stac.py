"""Builds the STAC item of a layer as plain JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.datasets.documents import SOFTWARE
from geomill.datasets.outputs import FileEntry
from geomill.datasets.stac import FILE, PROCESSING, PROJECTION, VERSION, provenance, when
from geomill.datasets.times import Times
from geomill.vector.columns import GEOMETRY, ID
from geomill.vector.facts import LayerColumn

TABLE = "https://stac-extensions.github.io/table/v1.2.0/schema.json"
PARQUET_TYPE = "application/vnd.apache.parquet"
PMTILES_TYPE = "application/vnd.pmtiles"
GEOJSON_TYPE = "application/geo+json"
_TITLES = {PARQUET_TYPE: ("GeoParquet", "data"), PMTILES_TYPE: ("Vector tiles", "visual")}
"""The title and role of a file by its media type."""


class LayerItemParts(BaseModel):
    """The values that a layer's item is built from."""

    item_id: str
    collection_id: str
    geometry: dict[str, Any]
    bbox: list[float]
    times: Times
    srid: int
    geometry_type: str
    columns: list[LayerColumn]
    rows: int
    table_name: str
    asset_id: str | None
    files: list[FileEntry]
    folder: str
    """The folder of the item's file. Links to the other files are relative to it."""
    lineage: str
    workflow_id: str | None
    workflow_version: int | None
    job_id: str


def build_item(parts: LayerItemParts) -> dict[str, Any]:
    extensions = [PROJECTION, TABLE, PROCESSING, *([FILE] if parts.files else [])]
    return {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": extensions,
        "id": parts.item_id,
        "collection": parts.collection_id,
        "geometry": parts.geometry,
        "bbox": parts.bbox,
        "properties": {
            **when(parts.times),
            **_table(parts),
            **provenance(parts.lineage, SOFTWARE, parts.workflow_id, parts.workflow_version, parts.job_id),
        },
        "links": [],
        "assets": _assets(parts),
    }


def _table(parts: LayerItemParts) -> dict[str, Any]:
    columns = [{"name": ID, "type": "bigint"}]
    columns += [
        {
            "name": column.name,
            "type": column.type,
            **({"description": column.source} if column.source != column.name else {}),
        }
        for column in parts.columns
    ]
    return {
        "proj:code": f"EPSG:{parts.srid}",
        "table:columns": [*columns, {"name": GEOMETRY, "type": parts.geometry_type}],
        "table:primary_geometry": GEOMETRY,
        "table:row_count": parts.rows,
        "geomill:table": parts.table_name,
    }


def _assets(parts: LayerItemParts) -> dict[str, Any]:
    assets: dict[str, Any] = {}
    if parts.asset_id:
        assets["features"] = {
            "href": f"/vector/collections/{parts.asset_id}/items",
            "type": GEOJSON_TYPE,
            "title": "OGC API Features",
            "roles": ["data"],
        }
    for file in parts.files:
        title, role = _TITLES[file.media_type]
        assets[file.role] = {
            "href": "./" + file.path.removeprefix(parts.folder + "/"),
            "type": file.media_type,
            "title": title,
            "roles": [role],
            "file:size": file.size,
            "file:checksum": "1220" + file.sha256,
        }
    return assets
