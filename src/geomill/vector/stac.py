"""The catalogue entry of a layer, as plain JSON."""

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
"""By media type, what a file is called and its role."""


class LayerItemParts(BaseModel):
    """All that an item is made of."""

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
    """Of the item's own file: the other files are named from there."""
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
        {"name": one.name, "type": one.type, **({"description": one.source} if one.source != one.name else {})}
        for one in parts.columns
    ]
    return {
        "proj:code": f"EPSG:{parts.srid}",
        "table:columns": [*columns, {"name": GEOMETRY, "type": parts.geometry_type}],
        "table:primary_geometry": GEOMETRY,
        "table:row_count": parts.rows,
        "geomill:table": parts.table_name,
    }


def _assets(parts: LayerItemParts) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if parts.asset_id:
        made["features"] = {
            "href": f"/vector/collections/{parts.asset_id}/items",
            "type": GEOJSON_TYPE,
            "title": "OGC API Features",
            "roles": ["data"],
        }
    for file in parts.files:
        title, role = _TITLES[file.media_type]
        made[file.role] = {
            "href": "./" + file.path.removeprefix(parts.folder + "/"),
            "type": file.media_type,
            "title": title,
            "roles": [role],
            "file:size": file.size,
            "file:checksum": "1220" + file.sha256,
        }
    return made
