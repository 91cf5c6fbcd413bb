"""Layers that are made up, in every format that is read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import shapely

from geomill.sdk import Storage

CONTAINER = "uploads"


def put(storage: Storage, file_name: str, data: bytes) -> None:
    path = Path(storage.recipe.zones["bronze"]) / CONTAINER / file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def squares(count: int, *, west: float = 5.0, south: float = 45.0, size: float = 0.01) -> np.ndarray[Any, Any]:
    """Side by side, 100 in a row."""
    columns, rows = np.arange(count) % 100, np.arange(count) // 100
    x, y = west + columns * size, south + rows * size
    return shapely.box(x, y, x + size * 0.9, y + size * 0.9)


def table(geometries: Sequence[Any], **columns: Any) -> pa.Table:
    number = len(geometries)
    columns = columns or {"name": [f"place {place}" for place in range(number)], "number": list(range(number))}
    wkb = pa.array(shapely.to_wkb(np.asarray(geometries, dtype=object), flavor="iso"), pa.binary())
    return pa.table({**columns, "wkb": wkb})


def write(
    path: Path,
    features: pa.Table,
    *,
    driver: str = "GPKG",
    crs: str | None = "EPSG:4326",
    kind: str = "Unknown",
    **options: Any,
) -> Path:
    append = path.exists()
    pyogrio.write_arrow(
        features, path, driver=driver, crs=crs, geometry_type=kind, geometry_name="wkb", append=append, **options
    )
    return path


def encoded(tmp_path: Path, features: pa.Table, extension: str = "gpkg", **options: Any) -> bytes:
    driver = {"gpkg": "GPKG", "fgb": "FlatGeobuf", "geojson": "GeoJSON", "geojsonl": "GeoJSONSeq"}[extension]
    path = tmp_path / f"made.{extension}"
    path.unlink(missing_ok=True)
    data = write(path, features, driver=driver, **options).read_bytes()
    path.unlink()
    return data


def shapefile(tmp_path: Path, features: pa.Table, **options: Any) -> dict[str, bytes]:
    folder = tmp_path / "shapefile"
    folder.mkdir()
    write(folder / "made.shp", features, driver="ESRI Shapefile", **options)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def zipped(files: dict[str, bytes]) -> bytes:
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(member, data)
    return memory.getvalue()


def geojson(*geometries: Any, properties: Sequence[dict[str, Any]] | None = None) -> bytes:
    features = [
        {
            "type": "Feature",
            "properties": properties[number] if properties else {"number": number},
            "geometry": None if geometry is None else json.loads(shapely.to_geojson(geometry)),
        }
        for number, geometry in enumerate(geometries)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def parquet(tmp_path: Path, features: pa.Table, **about: Any) -> bytes:
    primary = {"encoding": "WKB", "geometry_types": [], **about}
    geo = {"version": "1.1.0", "primary_column": "wkb", "columns": {"wkb": primary}}
    path = tmp_path / "made.parquet"
    pq.write_table(features.replace_schema_metadata({b"geo": json.dumps(geo).encode()}), path, row_group_size=7)
    return path.read_bytes()
