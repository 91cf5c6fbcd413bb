"""Builds the STAC item of a raster as plain JSON."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from geomill.datasets.documents import put_document
from geomill.datasets.outputs import FileEntry
from geomill.datasets.stac import EXTENSIONS, FILE, PROCESSING, PROJECTION, VERSION, provenance, when
from geomill.datasets.times import Times
from geomill.raster.facts import RasterClass, RasterFacts
from geomill.raster.rendering import rendering
from geomill.sdk import Storage

RASTER = f"{EXTENSIONS}/raster/v2.0.0/schema.json"
RENDER = f"{EXTENSIONS}/render/v1.0.0/schema.json"
CLASSIFICATION = f"{EXTENSIONS}/classification/v2.0.0/schema.json"
MOST_COLORS = 64
ROLES = {
    "data": ["data"],
    "mosaic": ["mosaic", "data"],
    "thumbnail": ["thumbnail"],
    "overview": ["overview"],
    "visual": ["visual"],
}
MOST_TILES = 200
"""An item with more tiles names only the mosaic."""
TITLES = {
    "data": "Cloud-optimized GeoTIFF",
    "mosaic": "MosaicJSON of all tiles",
    "tiling_scheme": "Tiling scheme",
    "thumbnail": "Thumbnail",
    "overview": "Preview",
    "visual": "Overview image as Cloud-optimized GeoTIFF",
}


class BandSummary(BaseModel):
    """Statistics of a band as in a STAC item."""

    minimum: float | None
    maximum: float | None
    mean: float
    stddev: float
    valid_percent: float
    histogram: dict[str, Any] | None = None


class RasterItemParts(BaseModel):
    """The values of which an item is built."""

    item_id: str
    collection_id: str
    geometry: dict[str, Any]
    bbox: list[float]
    times: Times
    facts: RasterFacts
    crs: str
    transform: tuple[float, float, float, float, float, float]
    shape: tuple[int, int]
    statistics: list[BandSummary]
    files: list[FileEntry]
    folder: str
    """The folder of the item's own file, to which paths of other files are relative."""
    lineage: str
    software: str
    workflow_id: str | None = None
    workflow_version: int | None = None
    job_id: str | None = None


def build_item(parts: RasterItemParts) -> dict[str, Any]:
    return {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": _extensions(parts),
        "id": parts.item_id,
        "collection": parts.collection_id,
        "geometry": parts.geometry,
        "bbox": parts.bbox,
        "properties": {
            **when(parts.times),
            **_projection(parts),
            **provenance(parts.lineage, parts.software, parts.workflow_id, parts.workflow_version, parts.job_id),
            "renders": _renders(parts),
        },
        "links": [],
        "assets": _assets(parts),
    }


def _extensions(parts: RasterItemParts) -> list[str]:
    classes = [CLASSIFICATION] if parts.facts.classes else []
    return [PROJECTION, RASTER, FILE, PROCESSING, RENDER, *classes]


def _projection(parts: RasterItemParts) -> dict[str, Any]:
    has_code = parts.crs.partition(":")[0] in ("EPSG", "ESRI", "IAU_2015", "OGC")
    place: dict[str, Any] = {"proj:code": parts.crs} if has_code else {"proj:code": None, "proj:wkt2": _wkt2(parts.crs)}
    step = [*parts.transform, 0, 0, 1]
    return {**place, "proj:shape": list(parts.shape), "proj:transform": step}


def _wkt2(text: str) -> str:
    """GDAL writes WKT in the older version, unless it is asked for the other."""
    import pyproj  # heavy, and few rasters have a system without a code

    return pyproj.CRS.from_wkt(text).to_wkt()


def _renders(parts: RasterItemParts) -> dict[str, Any]:
    """Return the default colours, for other tile servers. Ramps are left out, because they would be longer than the
    rest of the item."""
    facts = parts.facts
    house = rendering(
        facts.raster_type,
        [band.model_dump() for band in parts.statistics],
        dtype=facts.dtype,
        colors=[band.color for band in facts.bands],
        palette=facts.palette,
    )
    roles = {file.role for file in parts.files}
    render: dict[str, Any] = {
        "assets": [role for role in ("mosaic", "data") if role in roles],
        "bidx": list(house.bands),
    }
    if house.rescale:
        render["rescale"] = [list(low_high) for low_high in house.rescale]
    if house.colormap and len(house.colormap) <= MOST_COLORS:
        render["colormap"] = {str(value): list(color) for value, color in house.colormap.items()}
    if facts.nodata is not None:
        render["nodata"] = facts.nodata
    return {"default": {"title": "geomill's default rendering", **render}}


def _assets(parts: RasterItemParts) -> dict[str, Any]:
    """Return the assets of all files. Many tiles are left out, because an item with thousands of assets is useless and
    the mosaic lists them."""
    tiles = sum(file.role == "tile" for file in parts.files)
    assets: dict[str, Any] = {}
    for file in parts.files:
        if file.role == "tile" and tiles > MOST_TILES:
            continue
        key = file.role if file.role != "tile" else file.path.rpartition("/")[2].partition(".")[0]
        assets[key] = _asset(file, parts)
    return assets


def file_asset(file: FileEntry, folder: str) -> dict[str, Any]:
    """Return the STAC asset of a file, relative to the item's folder."""
    asset: dict[str, Any] = {
        "href": _href(file.path, folder),
        "type": file.media_type,
        "roles": ROLES.get(file.role, ["data"] if file.role == "tile" else ["metadata"]),
        "file:size": file.size,
        "file:checksum": "1220" + file.sha256,
    }
    if title := TITLES.get(file.role):
        asset["title"] = title
    return asset


def _asset(file: FileEntry, parts: RasterItemParts) -> dict[str, Any]:
    asset = file_asset(file, parts.folder)
    if file.role in ("data", "mosaic"):
        asset["bands"] = bands(parts.facts, parts.statistics)
        asset["data_type"] = parts.facts.dtype
        if parts.facts.nodata is not None:
            asset["nodata"] = parts.facts.nodata
    return asset


def _href(path: str, folder: str) -> str:
    relative = posixpath.relpath(path, folder)
    return relative if relative.startswith("../") else f"./{relative}"


def bands(facts: RasterFacts, statistics: Sequence[BandSummary]) -> list[dict[str, Any]]:
    entries = []
    for index, band in enumerate(facts.bands):
        entry: dict[str, Any] = {"name": band.name or f"band_{index + 1}", "raster:sampling": "area"}
        if band.units:
            entry["unit"] = band.units
        if (band.scale, band.offset) != (1.0, 0.0):
            entry |= {"raster:scale": band.scale, "raster:offset": band.offset}
        if index == 0 and facts.classes:
            entry["classification:classes"] = [_class(raster_class) for raster_class in facts.classes]
        if index < len(statistics) and statistics[index].minimum is not None:
            entry |= _statistics(statistics[index])
        entries.append(entry)
    return entries


def _class(raster_class: RasterClass) -> dict[str, Any]:
    """Return a class of the classification extension, which allows few characters in names and any in titles."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", raster_class.name).strip("_") or "class"
    color = {"color_hint": "".join(f"{part:02X}" for part in raster_class.color)} if raster_class.color else {}
    return {"value": raster_class.value, "name": f"{name}_{raster_class.value}", "title": raster_class.name, **color}


def _statistics(band: BandSummary) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "statistics": {
            "minimum": band.minimum,
            "maximum": band.maximum,
            "mean": band.mean,
            "stddev": band.stddev,
            "valid_percent": band.valid_percent,
        }
    }
    if band.histogram:
        entry["raster:histogram"] = band.histogram
    return entry


async def store_item(storage: Storage, container: str, parts: RasterItemParts) -> tuple[dict[str, Any], FileEntry]:
    item = build_item(parts)
    return item, await put_document(storage, container, f"{parts.folder}/item.json", item, "stac_item")
