"""A bad file is refused at once and for good, with the reason, and leaves nothing behind."""

from __future__ import annotations

import json
import sqlite3
import stat
import struct
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geomill.sdk import Storage
from geomill.sdk.testing import HandlerRun
from geomill.vector import geometry
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps

SQUARES = sources.squares(200)
VRT = b"<OGRVRTDataSource><OGRVRTLayer><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
KML = '<?xml version="1.0"?><!DOCTYPE kml [<!ENTITY x SYSTEM "file:///etc/passwd">]><kml><name>&x;</name></kml>'


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def gpkg(folder: Path) -> bytes:
    return sources.encoded(folder, sources.table(SQUARES), kind="Polygon")


def fgb(folder: Path) -> bytes:
    return sources.encoded(folder, sources.table(SQUARES), "fgb", kind="Polygon")


def parquet(folder: Path) -> bytes:
    return sources.parquet(folder, sources.table(SQUARES))


def link(folder: Path) -> bytes:
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        member = zipfile.ZipInfo("made.shp")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    return memory.getvalue()


def locked(folder: Path) -> bytes:
    """Return a zip file whose entries carry the password flag. Only the flag is checked."""
    data = bytearray(sources.zipped({"made.gpkg": b"x" * 100}))
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + place] |= 1
    return bytes(data)


def bomb(folder: Path) -> bytes:
    """A few bytes that claim four gigabytes."""
    data = bytearray(sources.zipped({"made.gpkg": b"x" * 100}))
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 0xF000_0000)
    return bytes(data)


def wrong_sum(folder: Path) -> bytes:
    """Return a zip file with a changed byte, so that its checksum is wrong."""
    data = bytearray(sources.zipped({"made.gpkg": gpkg(folder)}))
    data[len(data) // 3] ^= 0xFF
    return bytes(data)


def virtual(folder: Path) -> bytes:
    path = folder / "virtual.gpkg"
    path.write_bytes(gpkg(folder))
    statement = "CREATE VIRTUAL TABLE x USING VirtualOGR('/etc/passwd')"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, ?)", [statement])
    return path.read_bytes()


def lone(folder: Path) -> bytes:
    return sources.shapefile(folder, sources.table(SQUARES), kind="Polygon")["made.shp"]


def without(folder: Path, part: str) -> bytes:
    files = sources.shapefile(folder, sources.table(SQUARES), kind="Polygon")
    return sources.zipped({name: data for name, data in files.items() if not name.endswith(part)})


def wide(folder: Path) -> bytes:
    """2,000 columns: more than a table has."""
    columns = {f"c{number}": [number] for number in range(2_000)}
    return sources.parquet(folder, sources.table(SQUARES[:1], **columns))


def empty(folder: Path) -> bytes:
    return sources.encoded(folder, sources.table(SQUARES[:0], name=pa.array([], pa.string())), kind="Polygon")


def plain_sqlite(folder: Path) -> bytes:
    path = folder / "plain.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE x (y)")
    return path.read_bytes()


def plain_parquet(folder: Path) -> bytes:
    path = folder / "plain.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    return path.read_bytes()


def repeated(folder: Path) -> bytes:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([SQUARES[0].wkb])], ["a", "a", "wkb"])
    return sources.parquet(folder, table)


BAD: dict[str, tuple[str, Callable[[Path], bytes], str]] = {
    "nothing": ("a.gpkg", lambda _: b"", "unsupported_format"),
    "noise": ("a.gpkg", lambda _: np.random.default_rng(1).bytes(5_000), "unsupported_format"),
    "a program": ("a.geojson", lambda _: VRT, "outside_reference"),
    "entities": ("a.kml", lambda _: KML.encode(), "outside_reference"),
    "other xml": ("a.kml", lambda _: b"<gml><x/></gml>", "unsupported_format"),
    "other json": ("a.geojson", lambda _: b'{"type": "Topology"}', "unsupported_format"),
    "utf-16": ("a.csv", lambda _: "lon,lat\n1,2".encode("utf-16"), "bad_encoding"),
    "sqlite": ("a.gpkg", plain_sqlite, "unsupported_format"),
    "virtual table": ("a.gpkg", virtual, "outside_reference"),
    "truncated gpkg": ("a.gpkg", lambda folder: gpkg(folder)[:30_000], "unreadable"),
    "truncated fgb": ("a.fgb", lambda folder: fgb(folder)[:200], "unreadable"),
    "half a fgb": ("a.fgb", lambda folder: fgb(folder)[:15_000], "unreadable"),
    "truncated parquet": ("a.parquet", lambda folder: parquet(folder)[:-20], "unreadable"),
    "truncated geojson": ("a.geojson", lambda _: sources.geojson(*SQUARES)[:2_000], "unreadable"),
    "no places": ("a.csv", lambda _: b"a,b\n1,2\n", "no_geometry"),
    "no geo": ("a.parquet", plain_parquet, "no_geometry"),
    "no geometries": ("a.geojson", lambda _: sources.geojson(None, None), "no_geometry"),
    "no features": ("a.gpkg", empty, "empty"),
    "2,000 columns": ("a.parquet", wide, "too_many_columns"),
    "a column twice": ("a.parquet", repeated, "repeated_column"),
    "lone shp": ("a.shp", lone, "unsupported_format"),
    "no dbf": ("a.zip", lambda folder: without(folder, ".dbf"), "incomplete"),
    "no prj": ("a.zip", lambda folder: without(folder, ".prj"), "no_crs"),
    "zip traversal": ("a.zip", lambda _: sources.zipped({"../../made.gpkg": b"x"}), "unsafe_archive"),
    "zip drive": ("a.zip", lambda _: sources.zipped({"C:\\made.gpkg": b"x"}), "unsafe_archive"),
    "zip root": ("a.zip", lambda _: sources.zipped({"/etc/made.gpkg": b"x"}), "unsafe_archive"),
    "zip symlink": ("a.zip", link, "unsafe_archive"),
    "zip bomb": ("a.zip", bomb, "unsafe_archive"),
    "zip nested": ("a.zip", lambda _: sources.zipped({"made.zip": sources.zipped({"x": b"x"})}), "unsafe_archive"),
    "zip password": ("a.zip", locked, "unsafe_archive"),
    "zip many": ("a.zip", lambda _: sources.zipped({f"{n}.txt": b"" for n in range(1_001)}), "unsafe_archive"),
    "zip truncated": ("a.zip", lambda folder: sources.zipped({"made.gpkg": gpkg(folder)})[:5_000], "unreadable"),
    "zip wrong sum": ("a.zip", wrong_sum, "unreadable"),
    "zip of nothing": ("a.zip", lambda _: sources.zipped({"readme.txt": b"hello"}), "unsupported_format"),
    "zip of two": ("a.zip", lambda _: sources.zipped({"a.csv": b"x", "b.csv": b"y"}), "choose_layer"),
    "zip of a program": ("a.zip", lambda _: sources.zipped({"a.kml": VRT}), "outside_reference"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_it_is_refused_with_a_reason(steps: Steps, tmp_path: Path, kind: str) -> None:
    file_name, make, code = BAD[kind]
    sources.put(steps.storage, file_name, make(tmp_path))
    run = steps.validate(file_name)
    assert_refused(run, code)
    assert "passwd" not in run.error
    assert "root:" not in run.error


def assert_refused(run: HandlerRun, code: str) -> None:
    assert not run.success
    assert (run.ended.error_code, run.ended.retryable) == (code, False), run.error
    assert len(run.error) > 20


def test_names_that_lead_elsewhere_and_files_that_are_missing(steps: Steps) -> None:
    assert_refused(steps.validate("../../etc/passwd"), "invalid_name")
    assert_refused(steps.validate("nothing.gpkg"), "not_found")


def test_a_shapefile_that_is_cut_is_found_out_while_it_is_read(steps: Steps, tmp_path: Path) -> None:
    files = sources.shapefile(tmp_path, sources.table(SQUARES), kind="Polygon")
    files["made.shp"] = files["made.shp"][: len(files["made.shp"]) // 2]
    sources.put(steps.storage, "a.zip", sources.zipped(files))
    plan, chunks = steps.planned("a.zip")
    runs = [steps.load(plan, chunk) for chunk in chunks]
    ended = next((run for run in runs if not run.success), None) or steps.finish(plan, chunks, "made_r1")
    if ended.success:
        assert ended.output["repairs"]["geometry_null"] > 0
    else:
        assert_refused(ended, "unreadable")


def test_a_layer_that_lies_about_its_geometries(steps: Steps, tmp_path: Path) -> None:
    path = tmp_path / "lies.gpkg"
    sources.write(path, sources.table([*SQUARES[:2], shapely.LineString([(1, 1), (2, 2)])]), layer="lies")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE gpkg_geometry_columns SET geometry_type_name = 'POLYGON'")
    sources.put(steps.storage, "a.gpkg", path.read_bytes())
    assert_refused(steps.validate("a.gpkg"), "mixed_geometries")
    assert steps.tables("geo") == set()


def test_a_huge_geometry_is_refused(steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered for the test. The size is checked before the geometry is decoded."""
    monkeypatch.setattr(geometry, "LARGEST", 1_000_000)
    table = sources.table([SQUARES[0], circle(100_000)])
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, table, kind="Polygon"))
    run = steps.validate("a.gpkg")
    assert_refused(run, "geometry_too_large")
    assert "row 2" in run.error


def test_a_large_geometry_is_loaded(steps: Steps, tmp_path: Path) -> None:
    """All points of the geometry are corners of its hull."""
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, sources.table([circle(400_000)]), kind="Polygon"))
    output = steps.publish("a.gpkg")
    assert output["bbox"] == pytest.approx([4, 44, 6, 46])
    assert len(json.dumps(output["geometry"])) < 20_000
    assert steps.rows("SELECT ST_NPoints(geom) AS points FROM geo.made_r1") == [{"points": 400_001}]


@pytest.mark.slow
def test_a_feature_that_is_too_large_for_geojson_is_told_as_such(steps: Steps) -> None:
    """GDAL holds a feature as a tree of values, and stops at a limit."""
    ring = "[5.000000000,45.000000000],[6.000000000,45.000000000],[6.000000000,46.000000000]," * 700_000
    shape = f'{{"type":"Polygon","coordinates":[[{ring}[5,45]]]}}'
    feature = f'{{"type":"Feature","properties":{{}},"geometry":{shape}}}'
    sources.put(steps.storage, "a.geojson", f'{{"type":"FeatureCollection","features":[{feature}]}}'.encode())
    run = steps.validate("a.geojson")
    assert_refused(run, "geometry_too_large")
    assert "GeoPackage" in str(run.error)


def circle(points: int) -> shapely.Polygon:
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    return shapely.Polygon(np.column_stack([5 + np.cos(angles), 45 + np.sin(angles)]))


def test_rows_that_are_too_wide_are_told(steps: Steps, tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array([float(number)]) for number in range(1_500)}
    sources.put(steps.storage, "a.parquet", sources.parquet(tmp_path, sources.table(SQUARES[:1], **columns)))
    plan, chunks = steps.planned("a.parquet")
    assert_refused(steps.load(plan, chunks[0]), "too_many_columns")


def test_a_source_that_is_replaced_meanwhile_is_noticed(steps: Steps, tmp_path: Path) -> None:
    sources.put(steps.storage, "a.gpkg", gpkg(tmp_path))
    plan, chunks = steps.planned("a.gpkg")
    sources.put(steps.storage, "a.gpkg", sources.encoded(tmp_path, sources.table(SQUARES[:20]), kind="Polygon"))
    assert_refused(steps.load(plan, chunks[0]), "source_changed")


def test_wkb_that_is_nonsense_becomes_null(steps: Steps, tmp_path: Path) -> None:
    good, bad = SQUARES[0].wkb, b"\x01\x03\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\x7f"
    open_ring = struct.pack("<BII", 1, 3, 1) + struct.pack("<I8d", 4, 5, 45, 6, 45, 6, 46, 5, 46)
    table = pa.table({"n": [1, 2, 3], "wkb": pa.array([good, bad, open_ring], pa.binary())})
    sources.put(steps.storage, "a.parquet", sources.parquet(tmp_path, table, geometry_types=["Polygon"]))
    output = steps.publish("a.parquet")
    assert output["repairs"]["geometry_unreadable"] == 1
    assert output["repairs"]["rings_closed"] == 1
    assert json.dumps(output["bbox"]) == "[5.0, 45.0, 6.0, 46.0]"


@pytest.mark.parametrize("kind", [kind for kind, (_, _, code) in BAD.items() if code == "unreadable"])
def test_a_refusal_tells_nothing_of_this_machine(steps: Steps, tmp_path: Path, kind: str) -> None:
    file_name, make, _ = BAD[kind]
    sources.put(steps.storage, file_name, make(tmp_path))
    error = steps.validate(file_name).error
    for secret in (str(tmp_path), tempfile.gettempdir() + "/", "/vsimem", "Traceback", "SELECT"):
        assert secret not in error
