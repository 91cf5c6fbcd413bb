"""Every repair is made, counted and told; what cannot be repaired is refused with a reason."""

from __future__ import annotations

import datetime
import decimal
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geomill.sdk import Storage
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps

BOWTIE = shapely.Polygon([(5, 45), (6, 46), (6, 45), (5, 46)])
SQUARE = shapely.box(5, 45, 6, 46)


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def put(steps: Steps, tmp_path: Path, features: pa.Table, **options: Any) -> None:
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, features, **options))


def test_geometries_are_repaired_and_counted(steps: Steps, tmp_path: Path) -> None:
    clockwise = shapely.Polygon([(7, 45), (7, 46), (8, 46), (8, 45)])
    tall = shapely.force_3d(shapely.box(9, 45, 9.5, 46), 12.0)
    flat = shapely.Polygon([(1, 1), (1, 1), (1, 1), (1, 1)])
    infinite = shapely.Polygon([(1, 1), (np.inf, 1), (2, 2), (1, 1)])
    geometries = [SQUARE, BOWTIE, clockwise, tall, flat, infinite, shapely.Polygon(), None]
    put(steps, tmp_path, sources.table(geometries), kind="Polygon Z")
    output = steps.publish("a.gpkg")
    assert output["repairs"] == {
        "geometry_null": 1,
        "geometry_empty": 1,
        "geometry_not_finite": 1,
        "height_dropped": 1,
        "geometry_made_valid": 1,
        "geometry_collapsed": 1,
        "rings_turned": output["repairs"]["rings_turned"],
    }
    assert "1 geometries were invalid and were made valid" in output["warnings"]
    rows = steps.rows(
        "SELECT geom IS NULL AS nothing, coalesce(ST_IsValid(geom) AND ST_IsPolygonCCW(geom), true) AS good,"
        " ST_NDims(geom) AS dimensions FROM geo.made_r1 ORDER BY gid"
    )
    assert [row["nothing"] for row in rows] == [False] * 4 + [True] * 4
    assert all(row["good"] for row in rows)
    assert {row["dimensions"] for row in rows} == {2, None}


def test_heights_are_kept_if_wanted(steps: Steps, tmp_path: Path) -> None:
    put(steps, tmp_path, sources.table([shapely.Point(1, 2, 3), shapely.Point(1, 2)]), kind="Point Z")
    output = steps.publish("a.gpkg", keep_z=True)
    assert output["repairs"] == {"height_added": 1}
    assert [row["z"] for row in steps.rows("SELECT ST_Z(geom) AS z FROM geo.made_r1 ORDER BY gid")] == [3.0, 0.0]


def test_columns_are_named_well(steps: Steps, tmp_path: Path) -> None:
    columns = {
        "select": [1],
        "Größe (m²)": [2.0],
        "a b": ["x"],
        "A_B": ["y"],
        "x" * 70: ["long"],
        "gid": [7],
        "geom": [8],
    }
    data = sources.geojson(SQUARE, properties=[{name: values[0] for name, values in columns.items()}])
    sources.put(steps.storage, "a.geojson", data)
    output = steps.publish("a.geojson")
    row = steps.rows("SELECT * FROM geo.made_r1")[0]
    row.pop("geom")
    assert row == {
        "gid": 1, "select_": 1, "grosse_m2": 2.0, "a_b": "x", "a_b_2": "y", "x" * 63: "long", "gid_": 7, "geom_": 8,
    }  # fmt: skip
    assert "the column 'select' was renamed to 'select_'" in output["warnings"]
    comments = steps.rows("SELECT col_description('geo.made_r1'::regclass, 2) AS said")
    assert comments[0]["said"] == "select"


def test_values_that_readers_cannot_hold_become_null(steps: Steps, tmp_path: Path) -> None:
    far = pa.array([253_402_300_800_000 * 3, 0, None], pa.timestamp("ms"))
    columns = {
        "number": pa.array([np.nan, np.inf, 1.5]),
        "moment": far,
        "nothing": pa.array([None, None, None], pa.string()),
        "flag": pa.array([True, None, False]),
        "small": pa.array([1, -2, None], pa.int16()),
        "data": pa.array([b"\x00\x01", None, b""], pa.binary()),
    }
    geo = pa.table({**columns, "wkb": pa.array([SQUARE.wkb] * 3, pa.binary())})
    sources.put(steps.storage, "a.parquet", sources.parquet(tmp_path, geo))
    output = steps.publish("a.parquet")
    assert output["repairs"] == {"number_not_finite": 2, "date_out_of_range": 1}
    assert "the column 'nothing' is empty in all rows" in output["warnings"]
    rows = steps.rows("SELECT number, moment, flag, small, data FROM geo.made_r1 ORDER BY gid")
    assert [list(row.values()) for row in rows] == [
        [None, None, True, 1, b"\x00\x01"],
        [None, datetime.datetime(1970, 1, 1), None, -2, None],  # noqa: DTZ001  the column has no zone
        [1.5, None, False, None, b""],
    ]


def test_all_types_arrive(steps: Steps, tmp_path: Path) -> None:
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    columns = {
        "words": pa.array(["a", "b", "a"]).dictionary_encode(),
        "zoned": pa.array([noon, None, noon], pa.timestamp("ns", tz="UTC")),
        "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)]),
        "clock": pa.array([datetime.time(12, 30, 0, 5), None, None], pa.time64("us")),
        "list": pa.array([[1, 2], None, []]),
        "thing": pa.array([{"a": "x\u0000"}, {"a": None}, None]),
        "big": pa.array([2**40, None, 0], pa.uint64()),
        "half": pa.array([1.5, None, -2.0], pa.float32()),
        "money": pa.array([None, decimal.Decimal("12.34"), None], pa.decimal128(10, 2)),
        "none": pa.nulls(3),
    }
    table = pa.table({**columns, "wkb": pa.array([SQUARE.wkb] * 3, pa.binary())})
    sources.put(steps.storage, "a.parquet", sources.parquet(tmp_path, table))
    output = steps.publish("a.parquet")
    assert any("'money' holds decimals" in warning for warning in output["warnings"])
    rows = steps.rows("SELECT * FROM geo.made_r1 ORDER BY gid")
    expected = [
        [
            "a",
            noon,
            datetime.date(2024, 2, 29),
            datetime.time(12, 30, 0, 5),
            [1, 2],
            {"a": "x"},
            2**40,
            1.5,
            None,
            None,
        ],
        ["b", None, None, None, None, {"a": None}, None, None, 12.34, None],
        ["a", noon, datetime.date(1, 1, 1), None, [], None, 0, -2.0, None, None],
    ]
    assert [list(row.values())[1:-1] for row in rows] == expected


def test_text_is_made_utf8(steps: Steps, tmp_path: Path) -> None:
    files = sources.shapefile(tmp_path, sources.table([SQUARE], name=["Köln"]), kind="Polygon", encoding="ISO-8859-1")
    files = {name: data for name, data in files.items() if not name.endswith(".cpg")}
    assert "Köln".encode("latin-1") in files["made.dbf"]
    sources.put(steps.storage, "a.zip", sources.zipped(files))
    steps.publish("a.zip", encoding="ISO-8859-1")
    assert steps.rows("SELECT name FROM geo.made_r1") == [{"name": "Köln"}]
    sources.put(steps.storage, "b.csv", b"name,lon,lat\nK\xf6ln,7,51\nBonn,7,50\n")
    again = Steps(steps.storage, steps.url)
    assert again.publish("b.csv", "other_r1")["repairs"] == {"text_reencoded": 1}
    assert again.rows("SELECT name FROM geo.other_r1 ORDER BY gid")[0] == {"name": "Köln"}


def test_it_is_transformed_and_the_crs_must_be_known(steps: Steps, tmp_path: Path) -> None:
    place = shapely.box(500_000, 5_000_000, 501_000, 5_001_000)
    put(steps, tmp_path, sources.table([place]), kind="Polygon", crs="EPSG:32633")
    output = steps.publish("a.gpkg")
    assert output["bbox"] == pytest.approx([15.0, 45.15, 15.013, 45.162], abs=1e-2)
    in_source_crs = Steps(steps.storage, steps.url).publish("a.gpkg", "kept_r1", target_crs="source")
    assert in_source_crs["srid"] == 32633
    assert in_source_crs["bbox"] == pytest.approx(output["bbox"], abs=1e-6)
    sources.put(steps.storage, "b.csv", b"x,y\n500000,5000000\n")
    refused = Steps(steps.storage, steps.url).validate("b.csv")
    assert refused.ended.error_code == "no_crs"
    assert "source_crs" in refused.error
    from_csv = Steps(steps.storage, steps.url).publish("b.csv", "given_r1", source_crs="EPSG:32633")
    assert from_csv["bbox"][:2] == pytest.approx([15.0, 45.153], abs=1e-2)


@pytest.mark.parametrize(
    ("geometry", "crs", "options", "code"),
    [
        (shapely.box(500_000, 5_000_000, 501_000, 5_001_000), "EPSG:4326", {}, "wrong_crs"),
        (SQUARE, "EPSG:32633", {}, "wrong_crs"),
        (SQUARE, "EPSG:3857", {}, "wrong_crs"),
        (SQUARE, "EPSG:4326", {"target_crs": "nonsense"}, "bad_crs"),
        (SQUARE, "EPSG:4326", {"source_crs": "EPSG:1"}, "bad_crs"),
        (shapely.box(1000, 1000, 2000, 2000), "+proj=laea +lat_0=45 +lon_0=5", {"target_crs": "source"}, "bad_crs"),
    ],
)
def test_a_wrong_crs_is_refused(
    steps: Steps, tmp_path: Path, geometry: Any, crs: str, options: dict[str, str], code: str
) -> None:
    put(steps, tmp_path, sources.table([geometry]), kind="Polygon", crs=crs)
    run = steps.validate("a.gpkg", **options)
    assert (run.ended.error_code, run.ended.retryable) == (code, False), run.error


def test_an_outlier_is_no_wrong_crs(steps: Steps, tmp_path: Path) -> None:
    geometries = [*sources.squares(30), shapely.box(9_000, 9_000, 9_001, 9_001)]
    put(steps, tmp_path, sources.table(geometries), kind="Polygon")
    output = steps.publish("a.gpkg", chunk_rows=10)
    assert output["repairs"]["geometry_not_on_earth"] == 1
    assert steps.rows("SELECT gid FROM geo.made_r1 WHERE geom IS NULL") == [{"gid": 31}]


def test_a_crs_that_is_given_wins(steps: Steps, tmp_path: Path) -> None:
    put(steps, tmp_path, sources.table([SQUARE]), kind="Polygon", crs="EPSG:32633")
    assert steps.publish("a.gpkg", source_crs="EPSG:4326")["bbox"] == [5.0, 45.0, 6.0, 46.0]


def test_mixed_geometries_are_refused_or_split(steps: Steps) -> None:
    collection = shapely.GeometryCollection([shapely.Point(1, 1), shapely.box(2, 2, 3, 3)])
    sources.put(steps.storage, "a.geojson", sources.geojson(SQUARE, SQUARE, shapely.Point(5, 45), collection, None))
    run = steps.validate("a.geojson")
    assert (run.ended.error_code, run.ended.retryable) == ("mixed_geometries", False)
    assert "mixed_geometries=split" in run.error
    output = steps.publish("a.geojson", mixed_geometries="split")
    assert output["tables"] == [
        {"table_name": "made_r1", "geometry_type": "MultiPolygon", "rows": 4},
        {"table_name": "made_r1_points", "geometry_type": "MultiPoint", "rows": 2},
    ]
    assert steps.tables() == {"made_r1", "made_r1_points"}
    assert [row["gid"] for row in steps.rows("SELECT gid FROM geo.made_r1_points ORDER BY gid")] == [3, 4]
    assert output["repairs"]["collection_unpacked"] == 1


def test_a_collection_of_one_kind_is_unpacked(steps: Steps) -> None:
    nested = shapely.GeometryCollection([SQUARE, shapely.GeometryCollection([shapely.box(7, 45, 8, 46)])])
    sources.put(steps.storage, "a.geojson", sources.geojson(SQUARE, nested))
    assert steps.publish("a.geojson")["geometry_type"] == "MultiPolygon"
    assert steps.rows("SELECT ST_NumGeometries(geom) AS parts FROM geo.made_r1 ORDER BY gid")[1]["parts"] == 2


def test_arcs_become_lines(steps: Steps, tmp_path: Path) -> None:
    def circle(west: float) -> bytes:
        corners = [(west, 45), (west + 1, 46), (west + 2, 45), (west + 1, 44), (west, 45)]
        arcs = struct.pack("<BII10d", 1, 8, 5, *(number for corner in corners for number in corner))
        return struct.pack("<BII", 1, 10, 1) + arcs

    features = pa.table({"name": ["a", "b", "c"], "wkb": pa.array([circle(5), SQUARE.wkb, circle(9)], pa.binary())})
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, features))
    assert steps.publish("a.gpkg")["geometry_type"] == "MultiPolygon"
    wkt = b'name,wkt\na,"CURVEPOLYGON (CIRCULARSTRING (5 45, 6 46, 7 45, 6 44, 5 45))"\n'
    sources.put(steps.storage, "a.csv", wkt)
    Steps(steps.storage, steps.url).publish("a.csv", "text_r1", source_crs="EPSG:4326")
    areas = [row["area"] for row in steps.rows("SELECT ST_Area(geom) AS area FROM geo.made_r1 ORDER BY gid")]
    assert areas == pytest.approx([np.pi, 1.0, np.pi], abs=0.01)
    assert steps.rows("SELECT ST_Area(geom) AS area FROM geo.text_r1")[0]["area"] == pytest.approx(np.pi, abs=0.01)


def test_ids_that_repeat_are_told(steps: Steps, tmp_path: Path) -> None:
    table = sources.table(sources.squares(4), code=["a", "b", "b", None], key=["1", "2", "3", "4"])
    put(steps, tmp_path, table, kind="Polygon")
    output = steps.publish("a.gpkg", id_column="code")
    assert any("1 rows repeat a value, 1 have none" in warning for warning in output["warnings"])
    Steps(steps.storage, steps.url).publish("a.gpkg", "unique_r1", id_column="key")
    indexes = steps.rows("SELECT indexdef FROM pg_indexes WHERE tablename = 'unique_r1'")
    assert any("UNIQUE" in row["indexdef"] and "(key)" in row["indexdef"] for row in indexes)
    assert steps.validate("a.gpkg", id_column="nothing").ended.error_code == "no_such_column"


def test_what_crosses_the_antimeridian_is_cut_there(steps: Steps, tmp_path: Path) -> None:
    fiji = shapely.box(2_850_000, -1_950_000, 3_450_000, -1_700_000)  # EPSG:3832 has its middle at 150° east
    put(steps, tmp_path, sources.table([fiji]), kind="Polygon", crs="EPSG:3832")
    output = steps.publish("a.gpkg")
    assert output["repairs"]["antimeridian_mended"] == 1
    west, _, east, _ = output["bbox"]
    assert west > 170
    assert east < -170
    row = steps.rows("SELECT ST_NumGeometries(geom) AS parts, ST_XMax(geom) - ST_XMin(geom) AS width FROM geo.made_r1")
    assert row == [{"parts": 2, "width": 360.0}]
    assert output["geometry"]["type"] == "MultiPolygon"
