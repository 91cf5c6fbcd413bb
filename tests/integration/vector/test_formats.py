"""Every format that is read gives the same table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from geomill.sdk import Storage
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps

COUNT = 30


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def shapes(tmp_path: Path, features: pa.Table) -> dict[str, bytes]:
    return sources.shapefile(tmp_path, features, kind="Polygon")


def kml(features: pa.Table) -> bytes:
    marks = []
    for name, wkb in zip(features["name"].to_pylist(), features["wkb"].to_pylist(), strict=True):
        ring = " ".join(f"{x},{y}" for x, y in shapely.get_coordinates(shapely.from_wkb(wkb)))
        line = f"<LinearRing><coordinates>{ring}</coordinates></LinearRing>"
        shape = f"<Polygon><outerBoundaryIs>{line}</outerBoundaryIs></Polygon>"
        marks.append(f"<Placemark><name>{name}</name>{shape}</Placemark>")
    inside = "".join(marks)
    return (
        f'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>{inside}</Document></kml>'.encode()
    )


def csv(features: pa.Table) -> bytes:
    rows = zip(features["name"].to_pylist(), features["number"].to_pylist(), features["wkb"].to_pylist(), strict=True)
    lines = [f'{name},{number},"{shapely.from_wkb(wkb).wkt}"' for name, number, wkb in rows]
    return "\n".join(["name,number,wkt", *lines]).encode()


FILES: dict[str, Callable[[Path, pa.Table], bytes]] = {
    "a.gpkg": sources.encoded,
    "a.geojson": lambda folder, table: sources.encoded(folder, table, "geojson"),
    "a.geojsonl": lambda folder, table: sources.encoded(folder, table, "geojsonl"),
    "a.fgb": lambda folder, table: sources.encoded(folder, table, "fgb", kind="Polygon"),
    "a.parquet": sources.parquet,
    "a.zip": lambda folder, table: sources.zipped(shapes(folder, table)),
    "in-a-folder.zip": lambda folder, table: sources.zipped(
        {f"b/{name}": data for name, data in shapes(folder, table).items()}
    ),
    "gpkg.zip": lambda folder, table: sources.zipped({"x.gpkg": sources.encoded(folder, table)}),
    "a.kml": lambda _, table: kml(table),
    "a.kmz": lambda _, table: sources.zipped({"doc.kml": kml(table)}),
    "a.csv": lambda _, table: csv(table),
    "misnamed.bin": sources.encoded,
}


@pytest.mark.parametrize("file_name", FILES)
@pytest.mark.slow
def test_it_is_loaded_whole(steps: Steps, tmp_path: Path, file_name: str) -> None:
    table = sources.table(sources.squares(COUNT))
    sources.put(steps.storage, file_name, FILES[file_name](tmp_path, table))
    options = {"source_crs": "EPSG:4326"} if file_name == "a.csv" else {}
    output = steps.publish(file_name, chunk_rows=8, **options)
    assert (output["row_count"], output["geometry_type"], output["srid"]) == (COUNT, "MultiPolygon", 4326)
    rows = steps.rows(
        "SELECT name, ST_Area(geom) AS area, ST_IsPolygonCCW(geom) AS wound FROM geo.made_r1 ORDER BY gid"
    )
    assert sorted(row["name"] for row in rows) == sorted(table["name"].to_pylist())  # FlatGeobuf sorts by place
    assert all(row["wound"] for row in rows)
    assert sum(row["area"] for row in rows) == pytest.approx(COUNT * 0.009**2)
    registered = steps.rows("SELECT type, srid, coord_dimension FROM geometry_columns WHERE f_table_name = 'made_r1'")
    assert registered == [{"type": "MULTIPOLYGON", "srid": 4326, "coord_dimension": 2}]
    assert steps.tables("geo_staging") == set()


def test_nothing_is_left_beside_the_source(steps: Steps, tmp_path: Path) -> None:
    """SQLite writes journals beside a file that was last written with a write-ahead log, if it is let."""
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, sources.table(sources.squares(5)), kind="Polygon"))
    folder = Path(steps.storage.recipe.zones["bronze"]) / sources.CONTAINER
    with closing(sqlite3.connect(folder / "a.gpkg")) as database:
        assert database.execute("PRAGMA journal_mode = wal").fetchone() == ("wal",)
    assert steps.publish("a.gpkg")["row_count"] == 5
    assert [path.name for path in folder.iterdir()] == ["a.gpkg"]


def test_points_of_a_csv_file(steps: Steps) -> None:
    text = "code;Longitude;Latitude;when\n007;10.5;50.25;2024-01-31\n008;11;51;2024-02-01\n"
    sources.put(steps.storage, "points.csv", text.encode())
    output = steps.publish("points.csv")
    assert (output["geometry_type"], output["bbox"]) == ("Point", [10.5, 50.25, 11.0, 51.0])
    rows = steps.rows('SELECT code, ST_AsText(geom) AS place, "when_"::text AS day FROM geo.made_r1 ORDER BY gid')
    assert rows[0] == {"code": "007", "place": "POINT(10.5 50.25)", "day": "2024-01-31"}


def test_a_layer_is_chosen(steps: Steps, tmp_path: Path) -> None:
    path = tmp_path / "two.gpkg"
    sources.write(path, sources.table(sources.squares(3)), layer="areas", kind="Polygon")
    sources.write(path, sources.table(shapely.points([[1, 2], [3, 4]])), layer="places", kind="Point")
    sources.put(steps.storage, "two.gpkg", path.read_bytes())
    run = steps.validate("two.gpkg")
    assert (run.ended.error_code, run.ended.retryable) == ("choose_layer", False)
    assert "areas, places" in run.error
    assert steps.validate("two.gpkg", layer="nothing").ended.error_code == "choose_layer"
    assert steps.publish("two.gpkg", layer="places")["geometry_type"] == "Point"
