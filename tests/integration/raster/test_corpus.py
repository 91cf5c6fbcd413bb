"""Every raster of the corpus, from the file to the COG, held against GDAL's own programs and NumPy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

from geomill.handlers.raster.create_cog import create_cog
from geomill.sdk import ObjectName, Storage
from geomill.sdk.testing import run_handler
from tests.corpus.rasters import RASTERS, CorpusRaster
from tests.integration.raster import sources, steps
from tests.integration.raster.checks import check_cog
from tests.integration.raster.odd import validated

CASES = [pytest.param(name, marks=pytest.mark.slow if each.slow else ()) for name, each in RASTERS.items()]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "GDAL_PAM_ENABLED": "NO"}


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def info(path: Path) -> dict[str, Any]:
    """The report of GDAL's own program about a file."""
    document: dict[str, Any] = json.loads(run("gdalinfo", "-json", "-checksum", str(path)))
    return document


def checksums(document: dict[str, Any]) -> list[int]:
    return [band["checksum"] for band in document["bands"]]


def submitted(storage: Storage, each: CorpusRaster, folder: Path) -> tuple[Path, str]:
    """Put the source into bronze. One that is refused is converted first, as its refusal says."""
    path = each.write(folder)
    for file in folder.iterdir():
        sources.put(storage, file.read_bytes(), file.name)
    if not each.refused:
        return path, path.name
    refusal = validated(storage, path.name, **each.options)
    assert (refusal.ended.error_code, refusal.ended.retryable) == (each.refused, False), refusal.error
    assert "gdal_translate -of GTiff" in refusal.error
    converted = folder / "converted.tif"
    run("gdal_translate", "-q", "-of", "GTiff", str(path), str(converted))
    sources.put(storage, converted.read_bytes(), converted.name)
    return path, converted.name


def published(storage: Storage, file_name: str, each: CorpusRaster, **options: Any) -> Path:
    validation = steps.ok(validated(storage, file_name, **each.options))
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "corpus", **options}
    name = ObjectName.parse("silver/" + steps.ok(run_handler(create_cog, params, storage=storage))["blob_path"])
    check_cog(storage, name)
    return Path(storage.gdal_path(name))


@pytest.mark.parametrize("what", CASES)
def test_every_pixel_arrives(storage: Storage, tmp_path: Path, what: str) -> None:
    """GDAL computes the same checksums of source and output, at the same place in the same system."""
    source, name = submitted(storage, RASTERS[what], tmp_path)
    output = published(storage, name, RASTERS[what], target_crs="auto")
    before, after = info(source), info(output)
    assert after["size"] == before["size"]
    count = len(before["bands"])
    assert checksums(after)[:count] == checksums(before), what
    assert [band["type"] for band in after["bands"]][:count] == [band["type"] for band in before["bands"]]
    np.testing.assert_allclose(after["geoTransform"], before["geoTransform"], rtol=1e-12, atol=1e-9)
    with rasterio.open(output) as dataset:
        expected = RASTERS[what].options.get("source_crs") or before["coordinateSystem"]["wkt"]
        assert dataset.crs == rasterio.crs.CRS.from_user_input(expected)


@pytest.mark.parametrize("what", [case for case in CASES if RASTERS[str(case.values[0])].mercator])
def test_a_warp_is_as_that_of_gdalwarp(storage: Storage, tmp_path: Path, what: str) -> None:
    """GDAL's own program, told our grid, has the same values: all but those between two pixels."""
    each = RASTERS[what]
    source, name = submitted(storage, each, tmp_path)
    output = published(storage, name, each, target_crs="EPSG:3857", resampling="nearest")
    theirs = tmp_path / "theirs.tif"
    with rasterio.open(output) as dataset:
        ours, valid, box = dataset.read(1), dataset.dataset_mask() > 0, dataset.bounds
        size = (str(dataset.width), str(dataset.height))
    system = ("-s_srs", each.options["source_crs"]) if "source_crs" in each.options else ()
    place = ("-t_srs", "EPSG:3857", "-te", *map(repr, box), "-ts", *size)
    run("gdalwarp", "-q", "-r", "near", "-et", "0", *system, *place, str(source), str(theirs))
    with rasterio.open(theirs) as dataset:
        expected = dataset.read(1)
    assert valid.any()
    near = np.abs(ours[valid].astype(float) - expected[valid].astype(float))
    assert np.mean(near == 0) > 0.9, np.mean(near == 0)
