"""Downloads of features and pixels, read again by GDAL, pyarrow and rasterio."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
import pyogrio
import pytest
import rasterio
import shapely
from affine import Affine
from httpx import Response
from rasterio.io import MemoryFile

from geomill.domain.access.principal import Role
from geomill.downloads.formats import DownloadFormat
from geomill.downloads.order import DownloadColumn, FeaturesOrder
from geomill.sdk import Storage
from geomill.serve.downloads import desk
from geomill.serve.raster import clips
from geomill.serve.vector import downloads
from tests.integration.raster import sources
from tests.integration.serve.test_rasters import file_of, published, put_raster
from tests.integration.serve.zone import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

COLUMNS = "id integer PRIMARY KEY, name text, size double precision, made timestamptz, raw bytea, more jsonb"


async def layer(house: House, rows: int = 50, srid: int = 3857, **columns: Any) -> str:
    name = f"d_{uuid4().hex[:10]}"
    await house.execute(f"CREATE TABLE geo.{name} ({COLUMNS}, geom geometry(Point, {srid}))")
    await house.execute(
        f"INSERT INTO geo.{name} SELECT n, CASE n WHEN 1 THEN '=1+1' ELSE 'Größe ' || n END, n * 1.5,"
        " timestamptz '2024-01-01 00:00Z' + n * interval '1 day', decode('00ff', 'hex'), jsonb_build_object('n', n),"
        f" ST_Transform(ST_SetSRID(ST_MakePoint(15 + n * 0.01, 45), 4326), {srid})"
        f" FROM generate_series(0, {rows - 1}) AS n WHERE %s",
        True,
    )
    asset_id = await house.publish(name, "vector", table_name=name, outputs={"bbox": [15, 45, 16, 45]}, **columns)
    return f"/vector/collections/{asset_id}"


def frame(answer: Response, folder: Path, suffix: str) -> tuple[Any, Any, Any]:
    """Return what GDAL reads from a file: facts, geometries, columns by name."""
    assert answer.status_code == 200, answer.text
    path = folder / f"a.{suffix}"
    path.write_bytes(answer.content)
    source = f"/vsizip/{path}" if suffix == "zip" else str(path)
    meta, _, shapes, values = pyogrio.raw.read(source, datetime_as_string=True)
    return meta, shapely.from_wkb(shapes), dict(zip(meta["fields"], values, strict=True))


@pytest.mark.parametrize(("name", "suffix"), [("gpkg", "gpkg"), ("fgb", "fgb"), ("shp", "zip"), ("geojson", "geojson")])
@pytest.mark.slow
async def test_gdal_reads_what_was_loaded(house: House, tmp_path: Path, name: str, suffix: str) -> None:
    path = await layer(house)
    answer = await house.client.get(f"{path}/download", params={"f": name})
    meta, shapes, values = frame(answer, tmp_path, suffix)
    assert answer.headers["content-disposition"].endswith(f'.{suffix}"')
    assert len(shapes) == 50
    order = np.argsort(values["id"])
    assert values["id"][order].tolist() == list(range(50))
    assert values["name"][order][2] == "Größe 2"
    assert values["size"][order].tolist() == [n * 1.5 for n in range(50)]
    assert "2024-01-03" in str(values["made"][order][2]).replace("/", "-")
    degrees = name == "geojson"
    assert meta["crs"] == ("EPSG:4326" if degrees else "EPSG:3857")
    x = shapely.get_x(shapes[order])
    expected = 15 + np.arange(50) * 0.01
    assert np.allclose(x, expected if degrees else expected * 111319.49079327358, atol=1e-6 if degrees else 1e-2)
    if name == "shp":
        assert {part.filename.rpartition(".")[2] for part in zipfile.ZipFile(io.BytesIO(answer.content)).filelist} >= {
            "shp", "shx", "dbf", "prj", "cpg",
        }  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), [("gpkg", "gpkg"), ("fgb", "fgb"), ("shp", "zip"), ("geojson", "geojson")])
@pytest.mark.slow
async def test_missing_geometries_and_columns_that_are_called_as_ids(
    house: House, tmp_path: Path, name: str, suffix: str
) -> None:
    table = f"d_{uuid4().hex[:10]}"
    await house.execute(
        f"CREATE TABLE geo.{table} (gid bigint PRIMARY KEY, fid text, fid_0 int, geom geometry(Point, 4326))"
    )
    await house.execute(
        f"INSERT INTO geo.{table} VALUES (1, 'same', 7, 'SRID=4326;POINT(1 2)'),"
        " (2, 'same', 7, NULL), (3, NULL, 8, NULL)"
    )
    asset_id = await house.publish(table, "vector", table_name=table, outputs={"bbox": [1, 2, 1, 2]})
    answer = await house.client.get(f"/vector/collections/{asset_id}/download", params={"f": name})
    _, shapes, values = frame(answer, tmp_path, suffix)
    order = np.argsort(values["gid"])
    assert [shape and shape.wkt for shape in shapes[order]] == ["POINT (1 2)", None, None]
    assert values["fid"][order].tolist() == ["same", "same", None]
    assert values["fid_0"][order].tolist() == [7, 7, 8]


@pytest.mark.slow
async def test_geoparquet_and_csv_have_all_columns(house: House, tmp_path: Path) -> None:
    path = await layer(house)
    file = tmp_path / "a.parquet"
    file.write_bytes((await house.client.get(f"{path}/download?f=parquet")).content)
    table = pq.read_table(file)
    assert table.column("raw").to_pylist()[0] == b"\x00\xff"
    assert json.loads(table.column("more").to_pylist()[3]) == {"n": 3}
    geo = json.loads(pq.read_schema(file).metadata[b"geo"])
    assert geo["columns"]["geom"]["geometry_types"] == ["Point"]
    assert geo["columns"]["geom"]["crs"]["id"]["code"] == 3857
    answer = await house.client.get(f"{path}/download?f=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 50
    assert (rows[1]["name"], rows[2]["raw"], json.loads(rows[3]["more"])) == ("'=1+1", "AP8=", {"n": 3})
    assert shapely.from_wkt(rows[4]["geometry"]).x == pytest.approx(15.04)


@pytest.mark.slow
async def test_filter_and_box_apply_and_nothing_is_a_file_too(house: House, tmp_path: Path) -> None:
    path = await layer(house)
    ids = []
    for query in ({"filter": "size > 30"}, {"bbox": "15.045,44,15.075,46"}, {"filter": "name = 'none'"}):
        answer = await house.client.get(f"{path}/download", params={"f": "geojson", **query})
        ids.append([feature["properties"]["id"] for feature in answer.json()["features"]])
    assert ids == [list(range(21, 50)), [5, 6, 7], []]
    assert answer.json()["features"] == []
    empty = await house.client.get(f"{path}/download", params={"f": "gpkg", "filter": "name = 'none'"})
    assert len(frame(empty, tmp_path, "gpkg")[1]) == 0
    assert (await house.client.get(f"{path}/download?f=csv&filter=size>999")).text.startswith("id,name,size")
    for query in ("f=exe", "f=csv&filter=pg_sleep(9)=1", "f=csv&bbox=1,2,x,4", "f=csv&filter=nobody=1", ""):
        assert (await house.client.get(f"{path}/download?{query}")).status_code in (400, 422), query


@pytest.mark.slow
async def test_a_download_is_for_whom_the_asset_is_shown_and_gone_with_it(house: House) -> None:
    hidden = await layer(house, clearance_state="ouo")
    assert (await house.client.get(f"{hidden}/download?f=csv")).status_code == 404
    partner = await house.key(Role.SUBMITTER, platform_id="other")
    assert (await house.client.get(f"{hidden}/download?f=csv", headers=partner)).status_code == 404
    reader = await house.key(Role.READER)
    answer = await house.client.get(f"{hidden}/download?f=csv", headers=reader)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-cache")
    shown = await layer(house)
    assert (await house.client.get(f"{shown}/download?f=csv")).status_code == 200
    await house.execute(
        "UPDATE app.geospatial_assets SET deleted_at = now(), deleted_by = 'x' WHERE asset_id = %s",
        shown.rpartition("/")[2],
    )
    await asyncio.sleep(1.1)
    assert (await house.client.get(f"{shown}/download?f=csv")).status_code == 404


@pytest.mark.slow
async def test_a_download_is_bounded_in_rows_bytes_and_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await layer(house)
    with monkeypatch.context() as change:
        change.setattr(downloads, "MOST_ROWS", 49)
        refused = await house.client.get(f"{path}/download?f=gpkg")
        assert (refused.status_code, "features match" in refused.json()["detail"]) == (409, True)
        assert (await house.client.get(f"{path}/download?f=gpkg&filter=id<9")).status_code == 200
    with monkeypatch.context() as change:
        change.setattr(downloads, "MOST_BYTES", 2_000)
        refused = await house.client.get(f"{path}/download?f=geojson")
        assert (refused.status_code, "MB" in refused.json()["detail"]) == (409, True)
    with monkeypatch.context() as change:
        change.setattr(desk, "LONGEST_SECONDS", 0.05)
        refused = await house.client.get(f"{path}/download?f=geojson")
        assert (refused.status_code, "seconds" in refused.json()["detail"]) == (409, True)
    with monkeypatch.context() as change:
        change.setattr(desk, "MOST_OPEN", 0)
        assert (await house.client.get(f"{path}/download?f=geojson")).status_code == 503
    assert (await house.client.get(f"{path}/download?f=geojson")).status_code == 200


@pytest.fixture(scope="module")
def picture(shelf: Storage) -> dict[str, Any]:
    return put_raster(
        shelf, sources.SyntheticRaster(sources.noise((2, 300, 400), "int16", 0, 999), nodata=-1), "clipped"
    )


@pytest.mark.slow
async def test_a_clip_has_the_pixels_of_the_file(house: House, shelf: Storage, picture: dict[str, Any]) -> None:
    start = await published(house, "clipped", picture, "multispectral")
    with rasterio.open(file_of(shelf, picture)) as whole:
        everything, transform, crs, names = whole.read(), whole.transform, whole.crs, whole.descriptions
    west, north = transform @ (50.5, 60.5)
    east, south = transform @ (120.5, 100.5)
    params = {"bbox": f"{west},{south},{east},{north}", "bbox-crs": str(crs)}
    answer = await house.client.get(f"{start}/clip.tif", params=params)
    assert answer.status_code == 200, answer.text
    with MemoryFile(answer.content) as memory, memory.open() as clip:
        assert np.array_equal(clip.read(), everything[:, 60:101, 50:121])
        assert clip.transform.almost_equals(transform @ Affine.translation(50, 60))
        assert (clip.crs, clip.nodata, clip.descriptions) == (crs, -1, names)
        assert clip.tags(ns="IMAGE_STRUCTURE").get("LAYOUT") == "COG"
    for query in ("", "bbox=1,2,3", "bbox=3,2,1,4", "bbox=100,10,101,11", "bbox=1,2,nan,4"):
        assert (await house.client.get(f"{start}/clip.tif?{query}")).status_code == 422, query
    assert (await house.client.get(f"{start}/clip.tif?bbox=1,2,3,4&bbox-crs=/etc/passwd")).status_code in (400, 422)


@pytest.mark.slow
async def test_a_box_of_a_clip_has_the_axes_of_its_system(
    house: House, shelf: Storage, picture: dict[str, Any]
) -> None:
    start = await published(house, "clipped_by_axes", picture, "multispectral")
    west, south, east, north = (await house.client.get(f"{start}/info.geojson")).json()["bbox"]
    box = [west + (east - west) / 3, south + (north - south) / 3, east - (east - west) / 3, north]
    plain = await house.client.get(f"{start}/clip.tif", params={"bbox": ",".join(map(str, box))})
    swapped = ",".join(str(box[place]) for place in (1, 0, 3, 2))
    for system in ("EPSG:4326", "[EPSG:4326]", "http://www.opengis.net/def/crs/EPSG/0/4326"):
        clip = await house.client.get(f"{start}/clip.tif", params={"bbox": swapped, "bbox-crs": system})
        assert clip.content == plain.content, system


async def test_a_clip_is_bounded_and_for_whom_the_asset_is_shown(
    house: House, shelf: Storage, picture: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = await published(house, "clipped2", picture, "multispectral", clearance_state="ouo")
    with rasterio.open(file_of(shelf, picture)) as whole:
        box = {"bbox": ",".join(map(str, whole.bounds)), "bbox-crs": str(whole.crs)}
    assert (await house.client.get(f"{hidden}/clip.tif", params=box)).status_code == 404
    reader = await house.key(Role.READER)
    assert (await house.client.get(f"{hidden}/clip.tif", params=box, headers=reader)).status_code == 200
    monkeypatch.setattr(clips, "MOST_SAMPLES", 10)
    refused = await house.client.get(f"{hidden}/clip.tif", params=box, headers=reader)
    assert (refused.status_code, "pixels" in refused.json()["detail"]) == (409, True)


SESSIONS = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'geomill download'"


@dataclass
class _Impatient:
    """A request whose caller closes the connection once the query runs."""

    house: House

    async def is_disconnected(self) -> bool:
        async with self.house.pool.connection() as conn:
            row = await (await conn.execute(SESSIONS)).fetchone()
        return bool(row and row["n"])


@pytest.mark.slow
async def test_a_caller_who_goes_away_ends_the_child_and_its_query(house: House) -> None:
    work = FeaturesOrder(
        url=house.url, statement="SELECT pg_sleep(60)::text, NULL::bytea", format=DownloadFormat.CSV, name="x",
        columns=[DownloadColumn(name="a", type="text")], geometry_type=None, srid=4326, most_rows=1, most_bytes=10**6,
    )  # fmt: skip
    caller = _Impatient(house)
    answer = await desk.DownloadDesk().answer(caller, work, "x.csv", "text/csv")  # type: ignore[arg-type]
    assert answer.status_code == 499
    async with asyncio.timeout(10):
        while await caller.is_disconnected():  # noqa: ASYNC110  the server ends the query
            await asyncio.sleep(0.1)
