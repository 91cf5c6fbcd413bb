"""The PMTiles file, read by its authors' own reader and by GDAL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyogrio
import pystac
import pytest
import shapely
from pmtiles.reader import MmapSource, Reader, all_tiles

from geomill.domain.states import JobStatus
from geomill.sdk import Storage
from tests.integration.engine.platform import EnginePlatform
from tests.integration.vector import sources

INPUTS = {
    "container_name": sources.CONTAINER, "file_name": "a.gpkg", "table_name": "parcels", "blob_prefix": "x",
    "pmtiles": True,
}  # fmt: skip


async def publish(platform: EnginePlatform, **inputs: Any) -> dict[str, Any]:
    platform.worker(concurrency=2)
    job = await platform.run("vector_processing", {**INPUTS, **inputs})
    assert job.status is JobStatus.COMPLETED, job.error_message
    return job.result_data or {}


def squares(storage: Storage, folder: Path, count: int, **options: Any) -> None:
    table = sources.table(sources.squares(count))
    sources.put(storage, "a.gpkg", sources.encoded(folder, table, kind="Polygon", **options))


async def test_every_feature_is_in_the_deepest_tiles(
    platform: EnginePlatform, storage: Storage, tmp_path: Path
) -> None:
    squares(storage, tmp_path, 2_000)
    output = await publish(platform)
    item = pystac.Item.from_dict(output["stac_item"])
    assert item.assets["pmtiles"].media_type == "application/vnd.pmtiles"
    path = tmp_path / "silver/vectors/x/parcels.pmtiles"
    with path.open("rb") as file:
        header = Reader(MmapSource(file)).header()
        metadata = Reader(MmapSource(file)).metadata()
        places = [place for place, _ in all_tiles(MmapSource(file))]
    assert (header["clustered"], header["addressed_tiles_count"]) == (True, len(places))
    assert 0 < header["min_zoom"] == metadata["vector_layers"][0]["minzoom"]  # above, they are smaller than a pixel
    assert [header[f"{edge}_e7"] / 1e7 for edge in ("min_lon", "min_lat", "max_lon", "max_lat")] == pytest.approx(
        output["bbox"]
    )
    assert metadata["vector_layers"][0]["fields"]["number"] == "Number"
    fields, rows = read(path)
    assert {"mvt_id", "name", "number"} <= set(fields)
    assert len({row["mvt_id"] for row in rows}) == 2_000
    table = await platform.rows(
        "SELECT gid, name, number, ST_AsBinary(ST_Transform(geom, 3857)) AS geom FROM geo.parcels"
    )
    by_gid = {row["gid"]: row for row in table}
    for row in rows:
        same = by_gid[row["mvt_id"]]
        assert (row["name"], row["number"]) == (same["name"], same["number"])
        assert shapely.from_wkb(same["geom"]).buffer(50).covers(shapely.from_wkb(row["wkb"]))


def read(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Read the deepest zoom with GDAL."""
    about, table = pyogrio.read_arrow(path)
    geometry = about["geometry_name"] or "wkb_geometry"
    rows = table.rename_columns(["wkb" if name == geometry else name for name in table.column_names]).to_pylist()
    return table.column_names, rows


@pytest.mark.parametrize("crs", ["EPSG:32631", "EPSG:3035"])
async def test_tables_in_other_systems(platform: EnginePlatform, storage: Storage, tmp_path: Path, crs: str) -> None:
    squares(storage, tmp_path, 300)
    await publish(platform, target_crs=crs, pmtiles_max_zoom=11)
    _, rows = read(tmp_path / "silver/vectors/x/parcels.pmtiles")
    assert len({row["mvt_id"] for row in rows}) == 300


async def test_the_poles_are_left_out(platform: EnginePlatform, storage: Storage, tmp_path: Path) -> None:
    shapes = [shapely.box(-180, -90, 180, -60), shapely.box(0, 80, 10, 90), shapely.box(5, 5, 6, 6)]
    sources.put(storage, "a.gpkg", sources.encoded(tmp_path, sources.table(shapes), kind="Polygon"))
    await publish(platform, pmtiles_max_zoom=3)
    _, rows = read(tmp_path / "silver/vectors/x/parcels.pmtiles")
    assert {row["mvt_id"] for row in rows} == {1, 2, 3}


async def test_what_cannot_be_seen_at_the_zoom_is_told(
    platform: EnginePlatform, storage: Storage, tmp_path: Path
) -> None:
    squares(storage, tmp_path, 10)
    platform.worker(concurrency=2)
    job = await platform.run("vector_processing", {**INPUTS, "pmtiles_max_zoom": 0})
    assert job.status is JobStatus.FAILED
    assert "pmtiles_max_zoom" in (job.error_message or "")
