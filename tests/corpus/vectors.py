"""Odd vector files as people send them, each with the rows that its table must have, or the code of its refusal.

The rows are written down by hand, so they do not depend on the code that reads the files.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from tests.integration.vector import sources

Make = Callable[[Path], bytes]
POINT = shapely.Point(1, 2)
PLACE = "POINT(1 2)"


@dataclass(frozen=True)
class OddFile:
    file_name: str
    make: Make
    query: str = ""
    """Columns of the table geo.made_r1."""
    rows: Sequence[tuple[Any, ...]] = ()
    options: dict[str, Any] = field(default_factory=dict)
    told: Sequence[str] = ()
    """Parts of the warnings, or of the refusal."""
    refused: str = ""
    """The code of the refusal."""


def csv(text: str, encoding: str = "utf-8") -> Make:
    return lambda _: text.encode(encoding)


def points(count: int = 1, **columns: Any) -> pa.Table:
    return sources.table([POINT] * count, **columns)


def shape(table: pa.Table, kind: str = "Point", *, drop: tuple[str, ...] = (), **options: Any) -> Make:
    def make(tmp_path: Path) -> bytes:
        files = sources.shapefile(tmp_path, table, kind=kind, **options)
        return sources.zipped({name: data for name, data in files.items() if not name.endswith(drop or ("-",))})

    return make


def twice(tmp_path: Path, *tables: pa.Table) -> bytes:
    """A ZIP file with a folder for each table, in which the files have the same names."""
    files = {}
    for number, table in enumerate(tables):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = sources.shapefile(folder, table, kind="Point")
        files |= {f"{number}/{name}": data for name, data in made.items()}
    return sources.zipped(files)


def geopackage(table: pa.Table, kind: str = "Point", **options: Any) -> Make:
    return lambda tmp_path: sources.encoded(tmp_path, table, kind=kind, **options)


def wrong_cpg(tmp_path: Path) -> bytes:
    files = sources.shapefile(tmp_path, points(Año=["Ñandú"]), kind="Point", encoding="ISO-8859-1")
    return sources.zipped({**files, "made.cpg": b"UTF-8"})


def features(*properties: dict[str, Any], geometry: Any = POINT) -> Make:
    return lambda _: sources.geojson(*[geometry] * len(properties), properties=list(properties))


def curve(tmp_path: Path) -> bytes:
    """A GeoPackage with a semicircle, as WKB of a CIRCULARSTRING."""
    data = sources.encoded(tmp_path, sources.table([shapely.LineString([(0, 0), (1, 1)])], n=[1]))
    path = tmp_path / "curve.gpkg"
    path.write_bytes(data)
    wkb = struct.pack("<bII6d", 1, 8, 3, 0, 0, 1, 1, 2, 0)
    header = b"GP\x00\x01" + struct.pack("<i", 4326)
    with closing(sqlite3.connect(path)) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        database.execute("UPDATE made SET geom = ?", [header + wkb])
        database.commit()
    return path.read_bytes()


def json_column(tmp_path: Path) -> bytes:
    """A GeoPackage with a column that is declared as JSON, and texts in it that PostgreSQL refuses as jsonb."""
    texts = ['{"deep": [1]}', "{no json", "[" * 5_000 + "]" * 5_000, "1e99999", "NaN"]
    path = tmp_path / "json.gpkg"
    path.write_bytes(sources.encoded(tmp_path, points(len(texts), a=texts)))
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE gpkg_data_columns (table_name TEXT, column_name TEXT, name TEXT, title TEXT, "
            "description TEXT, mime_type TEXT, constraint_name TEXT)"
        )
        database.execute(
            "INSERT INTO gpkg_data_columns VALUES ('made', 'a', NULL, NULL, NULL, 'application/json', NULL)"
        )
        database.commit()
    return path.read_bytes()


def kml(tmp_path: Path) -> bytes:
    del tmp_path
    place = "<Placemark><name>Ñ &amp; 1</name><Point><coordinates>1,2,3</coordinates></Point></Placemark>"
    return f'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Folder>{place}</Folder></kml>'.encode()


GML = b'<?xml version="1.0"?><gml:FeatureCollection xmlns:gml="http://www.opengis.net/gml/3.2"></gml:FeatureCollection>'
WIDE = {f"c{number}": [number] for number in range(1_700)}
BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
TALL = shapely.Polygon([(0, 0, 5), (1, 0, 5), (1, 1, 5)])

ODD: dict[str, OddFile] = {
    # encodings
    "latin-1 shapefile without .cpg": OddFile(
        "a.zip",
        shape(points(Elevación=["España"]), drop=(".cpg",), encoding="ISO-8859-1"),
        "SELECT elevacion FROM geo.made_r1",
        [("España",)],
        told=["read as cp1252", "'Elevación' was renamed to 'elevacion'"],
    ),
    "latin-1 shapefile whose .cpg says utf-8": OddFile(
        "a.zip", wrong_cpg, "SELECT ano FROM geo.made_r1", [("Ñandú",)], told=["read as cp1252"]
    ),
    "shapefile in cp1251 by option": OddFile(
        "a.zip",
        shape(points(name=["Щит"]), drop=(".cpg",), encoding="CP1251"),
        "SELECT name FROM geo.made_r1",
        [("Щит",)],
        options={"encoding": "cp1251"},
    ),
    "latin-1 csv": OddFile(
        "a.csv",
        csv("Größe;lon;lat\nKöln;1;2\n", "latin-1"),
        "SELECT grosse, ST_AsText(geom) FROM geo.made_r1",
        [("Köln", PLACE)],
        told=["read as cp1252"],
    ),
    "csv in cp1251 by option": OddFile(
        "a.csv",
        csv("name,lon,lat\nЩит,1,2\n", "cp1251"),
        "SELECT name FROM geo.made_r1",
        [("Щит",)],
        options={"encoding": "windows-1251"},
    ),
    "csv with a byte order mark": OddFile(
        "a.csv", csv("lon,lat,n\n1,2,3\n", "utf-8-sig"), "SELECT n, ST_AsText(geom) FROM geo.made_r1", [(3, PLACE)]
    ),
    "csv of an unknown encoding": OddFile(
        "a.csv", csv("lon,lat\n1,2\n"), options={"encoding": "klingon"}, refused="bad_encoding"
    ),
    "csv that is not what the option says": OddFile(
        "a.csv", csv("name,lon,lat\nKöln,1,2\n", "latin-1"), options={"encoding": "utf-8"}, refused="bad_encoding"
    ),
    "geojson in latin-1": OddFile(
        "a.geojson",
        lambda _: sources.geojson(POINT, properties=[{"Größe": "Köln"}]).decode("unicode-escape").encode("latin-1"),
        refused="bad_encoding",
    ),
    # CSV as spreadsheets write it
    "decimal commas and german names": OddFile(
        "a.csv",
        csv("Breite;Länge;Höhe\n47,5;8,25;1.234,5\n46;9;-2,5\n"),
        "SELECT hohe, ST_AsText(geom) FROM geo.made_r1 ORDER BY gid",
        [(1234.5, "POINT(8.25 47.5)"), (-2.5, "POINT(9 46)")],
        told=["decimal commas"],
    ),
    "spanish names and tabs": OddFile(
        "a.tsv",
        csv("latitud\tlongitud\tn\n40.5\t-3.5\t7\n"),
        "SELECT n, ST_AsText(geom) FROM geo.made_r1",
        [(7, "POINT(-3.5 40.5)")],
    ),
    "x and y in degrees": OddFile(
        "a.csv", csv("x,y,n\n1,2,3\n"), "SELECT ST_AsText(geom) FROM geo.made_r1", [(PLACE,)], told=["fit degrees"]
    ),
    "x and y in metres": OddFile("a.csv", csv("x,y\n500000,5000000\n"), refused="no_crs"),
    "wkt in degrees": OddFile(
        "a.csv",
        csv('id,wkt\n1,POINT(1 2)\n2,\n3,"POINT(3 4)"\n'),
        "SELECT ST_AsText(geom) FROM geo.made_r1 ORDER BY gid",
        [(PLACE,), (None,), ("POINT(3 4)",)],
        told=["the values of 'wkt' fit degrees"],
    ),
    "wkt in metres": OddFile("a.csv", csv("wkt\nPOINT(500000 5000000)\n"), refused="no_crs"),
    "ewkt": OddFile(
        "a.csv",
        csv("n,geometry\n1,SRID=32631;POINT(500000 0)\n2,\n3,srid=32631; POINT(500000 0)\n"),
        "SELECT n, ST_AsText(geom, 9) FROM geo.made_r1 ORDER BY gid",
        [(1, "POINT(3 0)"), (2, None), (3, "POINT(3 0)")],
    ),
    "ewkt without a system": OddFile("a.csv", csv("geom\nSRID=0;POINT(1 2)\n"), refused="no_crs"),
    "ewkt of an unknown system": OddFile("a.csv", csv("geom\nSRID=999999;POINT(1 2)\n"), refused="bad_crs"),
    "ewkt of several systems": OddFile(
        "a.csv",
        csv("geom\nSRID=4326;POINT(1 2)\nSRID=3857;POINT(1 2)\n"),
        refused="wrong_crs",
        told=["the SRIDs 3857, 4326"],
    ),
    "values beyond the columns": OddFile(
        "a.csv",
        csv("lon,lat,n\n1,2,3\n1,2,3,4,5\n1,2\n"),
        "SELECT n FROM geo.made_r1 ORDER BY gid",
        [(3,), (3,), (None,)],
        told=["1 of the first 3 rows have more values"],
    ),
    "spaces around names and values": OddFile(
        "a.csv",
        csv("name, lat , lon,a b\n x , 2 , 1 , 7 \n"),
        "SELECT trim(name), a_b, ST_AsText(geom) FROM geo.made_r1",
        [("x", 7, PLACE)],
    ),
    "degrees, minutes and seconds": OddFile(
        "a.csv", csv("lat,lon\n50°30'N,7°15'E\n"), refused="no_geometry", told=["7°15'E", "decimal degrees"]
    ),
    "dates that do not exist": OddFile(
        "a.csv",
        csv("lon,lat,d\n1,2,2020-02-29\n1,2,2021-02-29\n"),
        "SELECT d FROM geo.made_r1 ORDER BY gid",
        [(date(2020, 2, 29),), (date(2021, 3, 1),)],
        told=["such as 2021-02-29"],
    ),
    "dates that do not exist in geojson": OddFile(
        "a.geojson",
        features({"d": "2020-04-31"}),
        "SELECT d FROM geo.made_r1",
        [(date(2020, 5, 1),)],
        told=["such as 2020-04-31"],
    ),
    "dates that all exist": OddFile(
        "a.geojson",
        features({"d": "2020-02-29", "n": "12020-02-30"}),
        "SELECT d FROM geo.made_r1",
        [(date(2020, 2, 29),)],
    ),
    "dates of a european": OddFile(
        "a.csv",
        csv("lon,lat,d\n1,2,31/12/1899\n1,2,01/02/2020\n"),
        "SELECT d FROM geo.made_r1 ORDER BY gid",
        [(date(1899, 12, 31),), (date(2020, 2, 1),)],
        told=["day, month, year"],
    ),
    "dates in an unclear order": OddFile(
        "a.csv",
        csv("lon,lat,d\n1,2,03/04/2020\n"),
        "SELECT d FROM geo.made_r1",
        [("03/04/2020",)],
        told=["date_order"],
    ),
    "swapped columns": OddFile(
        "a.csv",
        csv("lat,lon\n-120,45\n-100,46\n"),
        "SELECT ST_AsText(geom) FROM geo.made_r1 ORDER BY gid",
        [("POINT(-120 45)",), ("POINT(-100 46)",)],
        told=["swapped"],
    ),
    "a text after a megabyte of numbers": OddFile(
        "a.csv",
        csv("lon,lat,n,t\n" + f"1,2,3,{'x' * 2_000}\n" * 600 + "1,2,none,\n"),
        "SELECT n FROM geo.made_r1 ORDER BY gid DESC LIMIT 2",
        [("none",), ("3",)],
    ),
    "quoted separators and line breaks": OddFile(
        "a.csv",
        csv('lon,lat,note\n1,2,"a, ""b""\nc"\n'),
        "SELECT note FROM geo.made_r1",
        [('a, "b"\nc',)],
    ),
    "leading zeros stay text": OddFile(
        "a.csv",
        csv("lon,lat,code\n1,2,007\n1,2,012\n"),
        "SELECT code FROM geo.made_r1 ORDER BY gid",
        [("007",), ("012",)],
    ),
    "csv without places": OddFile("a.csv", csv("a,b\n1,2\n"), refused="no_geometry"),
    # names
    "zero-length and equal names": OddFile(
        "a.geojson",
        features({"": 1, "Name": "a", "NAME": "b", "name": "c", "select": 2}),
        "SELECT column_, name_2, name_3, name, select_ FROM geo.made_r1",
        [(1, "a", "b", "c", 2)],
    ),
    "names of system columns": OddFile(
        "a.geojson",
        features({"gid": 5, "geom": "x", "ctid": 6, "1st": 7}),
        "SELECT gid_, geom_, ctid_, _1st FROM geo.made_r1",
        [(5, "x", 6, 7)],
    ),
    "names in other scripts": OddFile(
        "a.geojson",
        features({"Ελλάδα": 1, "Łódź": 2, "名前": 3}),
        'SELECT "ελλάδα", lodz, "名前" FROM geo.made_r1',
        [(1, 2, 3)],
    ),
    "1,700 columns": OddFile("a.parquet", lambda tmp: sources.parquet(tmp, points(**WIDE)), refused="too_many_columns"),
    # geometries
    "mixed geometries": OddFile(
        "a.geojson", lambda _: sources.geojson(POINT, BOWTIE.buffer(0)), refused="mixed_geometries"
    ),
    "mixed geometries, split": OddFile(
        "a.geojson",
        lambda _: sources.geojson(POINT, POINT, shapely.LineString([(0, 0), (1, 1)])),
        "SELECT (SELECT count(*) FROM geo.made_r1), ST_AsText(geom) FROM geo.made_r1_lines",
        [(2, "MULTILINESTRING((0 0,1 1))")],
        options={"mixed_geometries": "split"},
    ),
    "null geometries": OddFile(
        "a.geojson",
        lambda _: sources.geojson(POINT, None),
        "SELECT number, ST_AsText(geom) FROM geo.made_r1 ORDER BY gid",
        [(0, PLACE), (1, None)],
    ),
    "only null geometries": OddFile("a.geojson", lambda _: sources.geojson(None, None), refused="no_geometry"),
    "empty layer": OddFile("a.geojson", lambda _: sources.geojson(), refused="empty"),
    "empty geopackage": OddFile("a.gpkg", geopackage(sources.table([], n=pa.array([], pa.int32()))), refused="empty"),
    "heights": OddFile(
        "a.gpkg",
        geopackage(sources.table([TALL], n=[1]), kind="Polygon Z"),
        "SELECT ST_NDims(geom), ST_Area(geom) FROM geo.made_r1",
        [(2, 0.5)],
        told=["heights"],
    ),
    "heights, kept": OddFile(
        "a.gpkg",
        geopackage(sources.table([TALL], n=[1]), kind="Polygon Z"),
        "SELECT ST_NDims(geom), ST_ZMax(geom) FROM geo.made_r1",
        [(3, 5.0)],
        options={"keep_z": True},
    ),
    "arcs": OddFile("a.gpkg", curve, "SELECT round(ST_Length(geom)::numeric, 2)::float8 FROM geo.made_r1", [(3.14,)]),
    "bow tie": OddFile(
        "a.geojson",
        lambda _: sources.geojson(BOWTIE),
        "SELECT ST_IsValid(geom), ST_Area(geom), ST_NumGeometries(geom) FROM geo.made_r1",
        [(True, 2.0, 2)],
        told=["made valid"],
    ),
    "collections": OddFile(
        "a.geojson",
        lambda _: sources.geojson(shapely.GeometryCollection([POINT, shapely.Point(3, 4)])),
        "SELECT ST_AsText(geom) FROM geo.made_r1",
        [("MULTIPOINT((1 2),(3 4))",)],
    ),
    "geojson with latitude first": OddFile(
        "a.geojson",
        lambda _: sources.geojson(shapely.Point(45, -120), shapely.Point(46, -121)),
        refused="swapped_coordinates",
    ),
    "geojson with latitude first, exchanged": OddFile(
        "a.geojson",
        lambda _: sources.geojson(shapely.Point(45, -120), shapely.Point(46, -121)),
        "SELECT ST_AsText(geom) FROM geo.made_r1 ORDER BY gid",
        [("POINT(-120 45)",), ("POINT(-121 46)",)],
        options={"swap_xy": True},
    ),
    # coordinate systems
    "shapefile without .prj": OddFile("a.zip", shape(points(n=[1]), drop=(".prj",)), refused="no_crs"),
    "shapefile without .prj, by option": OddFile(
        "a.zip",
        shape(sources.table([shapely.Point(500_000, 0)], n=[1]), drop=(".prj",), crs="EPSG:32631"),
        "SELECT ST_X(geom), ST_Y(geom) FROM geo.made_r1",
        [(3.0, 0.0)],
        options={"source_crs": "EPSG:32631"},
    ),
    "shapefile without .dbf": OddFile("a.zip", shape(points(n=[1]), drop=(".dbf",)), refused="incomplete"),
    # values
    "times before 1900 and time zones": OddFile(
        "a.gpkg",
        geopackage(
            points(
                d=pa.array([date(1066, 10, 14)]),
                t=pa.array([datetime(1789, 7, 14, 12, 30)], pa.timestamp("ms")),  # noqa: DTZ001
            )
        ),
        "SELECT d, t::text FROM geo.made_r1",
        [(date(1066, 10, 14), "1789-07-14 12:30:00+00")],
    ),
    "numbers that are none": OddFile(
        "a.parquet",
        lambda tmp: sources.parquet(tmp, points(2, v=pa.array([float("nan"), float("inf")]))),
        "SELECT v FROM geo.made_r1",
        [(None,), (None,)],
        told=["not finite"],
    ),
    "lists, structures and large integers": OddFile(
        "a.geojson",
        features({"list": [1, 2], "deep": {"a": {"b": None}}, "big": 2**53, "yes": True}),
        "SELECT list::text, deep::jsonb::text, big, yes FROM geo.made_r1",
        [("[1, 2]", '{"a": {"b": null}}', 2**53, True)],
    ),
    "objects beside texts": OddFile(
        "a.geojson",
        features(
            {"a": {"x": 1}}, {"a": "text"}, {"a": 5}, {"a": None}, {"a": {"x": "\ud800 \u0000 \\u0000"}}, {"a": 1e300}
        ),
        "SELECT a->>'x' AS x, a #>> '{}' AS a FROM geo.made_r1 ORDER BY gid",
        [
            ("1", '{"x": 1}'),
            (None, "text"),
            (None, "5"),
            (None, None),
            ("\ufffd  \\u0000", '{"x": "\ufffd  \\\\u0000"}'),
            (None, str(10**300)),
        ],
    ),
    "json in a geopackage": OddFile(
        "a.gpkg",
        json_column,
        "SELECT a->'deep'->>0 AS deep, jsonb_typeof(a) FROM geo.made_r1 ORDER BY gid",
        [("1", "object"), (None, "string"), (None, "string"), (None, "string"), (None, "string")],
    ),
    "lists and maps": OddFile(
        "a.parquet",
        lambda tmp: sources.parquet(
            tmp,
            points(
                list=pa.array([[1.5, float("nan"), float("-inf")]]),
                names=pa.array([[("en", "\\u0000")]], pa.map_(pa.string(), pa.string())),
                raw=pa.array([{"b": b"\x00\xff"}]),
            ),
        ),
        "SELECT list::text, names->>'en', raw->>'b' FROM geo.made_r1",
        [("[1.5, null, null]", "\\u0000", "AP8=")],
        told=["2 numbers were not finite"],
    ),
    "numbers beyond 63 bits": OddFile(
        "a.parquet",
        lambda tmp: sources.parquet(tmp, points(2, n=pa.array([2**64 - 1, 2**63 - 1], pa.uint64()))),
        "SELECT n FROM geo.made_r1 ORDER BY gid",
        [(None,), (2**63 - 1,)],
        told=["1 whole numbers were larger than 9,223,372,036,854,775,807"],
    ),
    "zero bytes": OddFile(
        "a.parquet",
        lambda tmp: sources.parquet(tmp, points(t=["a\0b"])),
        "SELECT t FROM geo.made_r1",
        [("ab",)],
        told=["zero bytes"],
    ),
    "binary": OddFile(
        "a.parquet",
        lambda tmp: sources.parquet(tmp, points(b=pa.array([b"\x00\xff"]))),
        "SELECT encode(b, 'hex') FROM geo.made_r1",
        [("00ff",)],
    ),
    # other formats
    "kml with entities": OddFile(
        "a.kml", kml, "SELECT name, ST_AsText(geom) FROM geo.made_r1", [("Ñ & 1", PLACE)], told=["heights"]
    ),
    "file geodatabase": OddFile(
        "a.zip",
        lambda _: sources.zipped({"a.gdb/a00000001.gdbtable": b"x"}),
        refused="unsupported_format",
        told=["File Geodatabase", "ogr2ogr -f GPKG"],
    ),
    "shapefiles of one name in two folders": OddFile(
        "a.zip",
        lambda tmp: twice(tmp, points(n=[1]), points(n=[2])),
        "SELECT n FROM geo.made_r1",
        [(2,)],
        options={"layer": "1/made"},
    ),
    "gml": OddFile("a.gml", lambda _: GML, refused="unsupported_format"),
    "flatgeobuf without a type": OddFile(
        "a.fgb",
        lambda tmp: sources.encoded(tmp, points(n=[4]), "fgb"),
        "SELECT n, ST_AsText(geom) FROM geo.made_r1",
        [(4, PLACE)],
    ),
    "one feature that is no collection": OddFile(
        "a.geojson",
        lambda _: json.dumps(
            {"type": "Feature", "properties": {"n": 1}, "geometry": {"type": "Point", "coordinates": [1, 2]}}
        ).encode(),
        "SELECT n, ST_AsText(geom) FROM geo.made_r1",
        [(1, PLACE)],
    ),
}
"""By what is odd about the file."""

assert len(ODD) >= 41
assert np.all([odd.refused or odd.query for odd in ODD.values()])


@dataclass(frozen=True)
class CorpusLayer:
    """A layer of features in one system. Its rows are shapes, names, and numbers of which one is missing."""

    crs: str
    shapes: Sequence[Any]


def _squares(x: float, y: float, side: float, count: int = 6) -> list[Any]:
    return [shapely.box(x + n * side, y, x + n * side + side * 0.8, y + side) for n in range(count)]


LAYERS: dict[str, CorpusLayer] = {
    "Alaska": CorpusLayer("EPSG:3338", _squares(-400_000, 900_000, 50_000)),
    "Antarctica": CorpusLayer("EPSG:3031", _squares(800_000, -1_500_000, 60_000)),
    "Mollweide": CorpusLayer("ESRI:54009", _squares(-2_000_000, 3_000_000, 300_000)),
    "Equal Earth": CorpusLayer("EPSG:8857", [shapely.Point(n * 1_000_000, -n * 500_000) for n in range(-3, 4)]),
    "New Zealand": CorpusLayer(
        "EPSG:2193", [shapely.LineString([(1_600_000 + n, 5_400_000), (1_601_000, 5_401_000 + n)]) for n in range(5)]
    ),
    "degrees": CorpusLayer("EPSG:4326", _squares(10, 50, 0.1)),
}
