"""No vector file and no option makes geomill call another server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyproj import CRS

from geomill.sdk import Storage
from tests.integration.listener import CallRecorder
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps, ok

SQUARES = sources.squares(3)
POINT: dict[str, Any] = {"type": "Point", "coordinates": [5, 45]}


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


@pytest.fixture
def listener() -> Iterator[CallRecorder]:
    with CallRecorder() as listener:
        yield listener


def link(url: str, kind: str = "link") -> dict[str, Any]:
    return {"type": kind, "properties": {"href": url, "url": url, "type": "proj4"}}


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"a": 1}, "geometry": POINT, **members}


def collection(*features: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": list(features), **members}).encode()


def linked_first(url: str) -> bytes:
    return json.dumps({"type": "FeatureCollection", "crs": link(url), "features": [feature()]}).encode()


def linked_geometry(url: str) -> bytes:
    return collection(*(feature() for _ in range(5_000)), feature(geometry={**POINT, "crs": link(url)}))


def lines(url: str) -> bytes:
    return b"\n".join(json.dumps(feature(crs=link(url), geometry={**POINT, "crs": link(url)})).encode() for _ in "ab")


LINKED: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "collection": ("a.geojson", linked_first),
    "at its end": ("a.geojson", lambda url: collection(feature(), crs=link(url))),
    "by url": ("a.geojson", lambda url: collection(feature(), crs=link(url, "url"))),
    "geometry": ("a.geojson", linked_geometry),
    "lone feature": ("a.geojson", lambda url: json.dumps(feature(crs=link(url))).encode()),
    "lone geometry": ("a.geojson", lambda url: json.dumps({**POINT, "crs": link(url)}).encode()),
    "lines": ("a.geojsonl", lines),
    "zipped": ("a.zip", lambda url: sources.zipped({"a.geojson": linked_first(url)})),
}


@pytest.mark.parametrize("kind", LINKED)
def test_a_crs_that_is_linked_is_refused(steps: Steps, listener: CallRecorder, kind: str) -> None:
    file_name, make = LINKED[kind]
    sources.put(steps.storage, file_name, make(listener.url))
    run = steps.validate(file_name)
    assert (run.ended.error_code, run.ended.retryable) == ("outside_reference", False), run.error
    assert "link" in run.error
    assert listener.calls == []


def escaped(url: str) -> bytes:
    return linked_first(url).replace(b'"crs"', b'"\\u0063rs"')


def named(url: str) -> bytes:
    return collection(feature(), crs={"type": "name", "properties": {"name": url}})


def kml(url: str) -> bytes:
    icon = f'<Style id="s"><IconStyle><Icon><href>{url}</href></Icon></IconStyle></Style>'
    remote = f"<NetworkLink><Link><href>{url}</href></Link></NetworkLink>"
    place = f"<Placemark><styleUrl>{url}#s</styleUrl><Point><coordinates>5,45</coordinates></Point></Placemark>"
    schema = f'<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:xsi="x" xsi:schemaLocation="{url} {url}">'
    return f"{schema}<Document>{icon}{place}{remote}</Document></kml>".encode()


def shapefile(url: str, folder: Path) -> bytes:
    files = sources.shapefile(folder, sources.table(SQUARES), kind="Polygon")
    return sources.zipped({**files, "made.prj": url.encode(), "made.cpg": url.encode()})


def geopackage(url: str, folder: Path) -> bytes:
    path = sources.write(folder / "made.gpkg", sources.table(SQUARES), kind="Polygon")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE gpkg_spatial_ref_sys SET definition = ?", [url])
        database.execute("UPDATE gpkg_spatial_ref_sys SET organization = ?", [url])
        database.execute("UPDATE gpkg_contents SET description = ?, identifier = ?", [url, url])
    return path.read_bytes()


def geoparquet(url: str, folder: Path) -> bytes:
    geo = {"version": "1.0.0", "primary_column": "wkb", "columns": {"wkb": {"encoding": "WKB", "crs": url}}}
    table = sources.table(SQUARES).replace_schema_metadata({b"geo": json.dumps(geo).encode()})
    pq.write_table(table, folder / "made.parquet")
    return (folder / "made.parquet").read_bytes()


def geoparquet_json(url: str, folder: Path) -> bytes:
    crs = {"$schema": url, "type": "link", "href": url, "id": {"authority": url, "code": 1}}
    geo = {"version": "1.0.0", "primary_column": "wkb", "columns": {"wkb": {"encoding": "WKB", "crs": crs}}}
    table = sources.table(SQUARES).replace_schema_metadata({b"geo": json.dumps(geo).encode()})
    pq.write_table(table, folder / "made.parquet")
    return (folder / "made.parquet").read_bytes()


def flatgeobuf(url: str, folder: Path) -> bytes:
    """The WKT of a system that has no code, with the URL in place of its beginning."""
    data = sources.encoded(
        folder, sources.table(SQUARES), "fgb", kind="Polygon", crs="+proj=laea +lat_0=45 +lon_0=5 +ellps=bessel"
    )
    begin = data.index(b"PROJCS[") if b"PROJCS[" in data else data.index(b"PROJCRS[")
    return data[:begin] + url.encode() + data[begin + len(url) :]


MENTIONED: dict[str, tuple[str, Callable[[str, Path], bytes]]] = {
    "escaped link": ("a.geojson", lambda url, _: escaped(url)),
    "name": ("a.geojson", lambda url, _: named(url)),
    "name of curl": ("a.geojson", lambda url, _: named(f"/vsicurl/{url}")),
    "kml": ("a.kml", lambda url, _: kml(url)),
    "kmz": ("a.kmz", lambda url, _: sources.zipped({"doc.kml": kml(url)})),
    "shapefile": ("a.zip", shapefile),
    "geopackage": ("a.gpkg", geopackage),
    "geoparquet": ("a.parquet", geoparquet),
    "geoparquet as json": ("a.parquet", geoparquet_json),
    "flatgeobuf": ("a.fgb", flatgeobuf),
    "csv": ("a.csv", lambda url, _: f'lon,lat,"{url}"\n5,45,{url}\n'.encode()),
    "wkt in csv": ("a.csv", lambda url, _: f'wkt\n"SRID={url};POINT (5 45)"\n'.encode()),
}


@pytest.mark.parametrize("kind", MENTIONED)
@pytest.mark.slow
def test_a_file_that_mentions_an_address_calls_nobody(
    steps: Steps, tmp_path: Path, listener: CallRecorder, kind: str
) -> None:
    """No call is made, whether the file is loaded or refused."""
    file_name, make = MENTIONED[kind]
    sources.put(steps.storage, file_name, make(listener.url, tmp_path))
    validation = steps.validate(file_name)
    if validation.success:
        steps.publish(file_name)
    assert listener.calls == []


OPTIONS = ("layer", "source_crs", "encoding", "x_column", "y_column", "wkt_column", "target_crs", "id_column")


@pytest.mark.parametrize("shape", ["{}", "/vsicurl/{}", "+proj=longlat +nadgrids={}", "urn:ogc:def:crs:{}", "EPSG:{}"])
@pytest.mark.parametrize("option", OPTIONS)
def test_no_option_calls_anybody(steps: Steps, listener: CallRecorder, option: str, shape: str) -> None:
    sources.put(steps.storage, "a.csv", b"lon,lat\n5,45\n")
    run = steps.validate("a.csv", **{option: shape.format(listener.url)})
    assert listener.calls == []
    if option.endswith("_crs"):
        assert (run.ended.error_code, run.ended.retryable) == ("bad_crs", False), run.error


def test_the_projjson_of_a_file_is_understood(steps: Steps, tmp_path: Path) -> None:
    """Most writers of GeoParquet name their reference system by PROJJSON."""
    content = sources.parquet(tmp_path, sources.table(SQUARES), crs=CRS.from_epsg(4258).to_json_dict())
    sources.put(steps.storage, "a.parquet", content)
    assert ok(steps.validate("a.parquet"))["facts"]["crs"] == "EPSG:4258"
