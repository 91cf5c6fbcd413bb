"""Layers of the corpus in formats that GDAL's own program writes. The tables are held against GeoPandas."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely

from geomill.sdk import Storage
from tests.corpus.vectors import LAYERS
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps

FORMATS = {
    "GPKG": "gpkg",
    "FlatGeobuf": "fgb",
    "GeoJSON": "geojson",
    "ESRI Shapefile": "shp",
    "GML": "gml",
    "KML": "kml",
}


def ogr2ogr(*arguments: str) -> None:
    done = subprocess.run(
        ("ogr2ogr", *arguments), capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stderr


def written(folder: Path, what: str, driver: str) -> tuple[geopandas.GeoDataFrame, Path]:
    """The layer as GeoPandas has it, and the file to submit."""
    layer = LAYERS[what]
    count = len(layer.shapes)
    numbers = [float(n) if n != 1 else np.nan for n in range(count)]
    frame = geopandas.GeoDataFrame(
        {"name": [f"Größe {n}" for n in range(count)], "number": numbers}, geometry=list(layer.shapes), crs=layer.crs
    )
    origin, path = folder / "origin.gpkg", folder / f"a.{FORMATS[driver]}"
    frame.to_file(origin, layer="a")
    degrees = ("-t_srs", "EPSG:4326") if driver in ("GeoJSON", "KML") else ()
    names = ("-dsco", "NameField=name") if driver == "KML" else ()
    ogr2ogr("-f", driver, *degrees, *names, str(path), str(origin))
    if driver != "ESRI Shapefile":
        return frame, path
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for part in folder.glob("a.*"):
            if part.suffix != ".zip":
                archive.write(part, part.name)
    return frame, folder / "a.zip"


@pytest.mark.parametrize("driver", FORMATS)
@pytest.mark.parametrize("what", LAYERS)
def test_tables_have_the_features_of_the_file(
    storage: Storage, database: str, tmp_path: Path, what: str, driver: str
) -> None:
    steps = Steps(storage, database)
    frame, path = written(tmp_path, what, driver)
    sources.put(storage, path.name, path.read_bytes())
    if driver == "GML":  # the refusal names the program that converts it
        refusal = steps.validate(path.name)
        assert refusal.ended.error_code == "unsupported_format", refusal.error
        assert "ogr2ogr -f GPKG data.gpkg FILE.gml" in refusal.error
        path = tmp_path / "data.gpkg"
        ogr2ogr("-f", "GPKG", str(path), str(tmp_path / "a.gml"))
        sources.put(storage, path.name, path.read_bytes())
    steps.publish(path.name)
    rows = steps.rows("SELECT *, ST_AsBinary(geom) AS wkb, ST_SRID(geom) AS srid FROM geo.made_r1 ORDER BY name")
    assert [row["name"] for row in rows] == frame["name"].tolist()
    expected = frame.to_crs(rows[0]["srid"]).geometry.to_numpy()
    loaded = shapely.from_wkb([row["wkb"] for row in rows])
    distance = shapely.hausdorff_distance(shapely.normalize(loaded), shapely.normalize(expected))
    assert distance.max() < 2e-6, distance  # GeoJSON has seven decimals
    assert np.allclose(shapely.area(loaded), shapely.area(expected), rtol=1e-4)
    assert np.allclose(shapely.length(loaded), shapely.length(expected), rtol=1e-4)
    numbers = [float(row["number"]) if row["number"] is not None else np.nan for row in rows]
    np.testing.assert_array_equal(numbers, frame["number"].to_numpy())
