"""No raster and no option makes geomill call another server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rasterio.shutil

from geomill.handlers.raster.create_cog import create_cog
from geomill.handlers.raster.generate_tiling_scheme import generate_tiling_scheme
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.handlers.raster.validate import validate
from geomill.sdk import Storage
from geomill.sdk.testing import run_handler
from tests.integration.listener import CallRecorder
from tests.integration.raster import sources
from tests.integration.raster.steps import tiling, validated


@pytest.fixture
def listener() -> Iterator[CallRecorder]:
    with CallRecorder() as listener:
        yield listener


SHAPES = ("{}", "/vsicurl/{}", "+proj=longlat +nadgrids={}", "urn:ogc:def:crs:{}", "EPSG:{}", "/etc/passwd")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("handler", [create_cog, generate_tiling_scheme])
def test_a_target_crs_calls_nobody(storage: Storage, listener: CallRecorder, handler: Any, shape: str) -> None:
    sources.put(storage, sources.rgb(64))
    validation = validated(storage)
    target = shape.format(listener.url)
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x", "target_crs": target}
    run = run_handler(handler, params, storage=storage)
    assert (run.ended.error_code, run.ended.retryable) == ("bad_target_crs", False), run.error
    assert "EPSG:32633" in run.error
    assert listener.calls == []


def test_the_crs_of_a_plan_calls_nobody(storage: Storage, listener: CallRecorder) -> None:
    """A plan goes from task to task as JSON, so what it says is checked again."""
    sources.put(storage, sources.rgb(600))
    validation, scheme = tiling(storage)
    scheme["plan"]["grid"]["crs"] = listener.url
    params = {"source": validation["source"], "plan": scheme["plan"], "tiles": scheme["batches"][0], "blob_prefix": "x"}
    run = run_handler(process_tile_batch, params, storage=storage)
    assert (run.ended.error_code, run.ended.retryable) == ("invalid_params", False), run.error
    assert listener.calls == []


@pytest.mark.parametrize(
    "option", ["datetime", "start_datetime", "end_datetime", "raster_type", "output_tier", "file_name"]
)
def test_no_other_option_calls_anybody(storage: Storage, listener: CallRecorder, option: str) -> None:
    sources.put(storage, sources.rgb(64))
    params = {"container_name": sources.CONTAINER, "file_name": "a.tif", option: listener.url}
    assert not run_handler(validate, params, storage=storage).success
    assert listener.calls == []


def jpeg2000(folder: Path, url: str) -> bytes:
    """Placed by GML, whose system is the URL."""
    (folder / "a.tif").write_bytes(sources.rgb(64).encode())
    rasterio.shutil.copy(folder / "a.tif", folder / "a.jp2", driver="JP2OpenJPEG", GMLJP2="YES", GeoJP2="NO")
    data = (folder / "a.jp2").read_bytes()
    names = set(re.findall(rb'srsName="([^"]*)"', data))
    assert names
    for name in names:
        data = data.replace(name, url.encode().ljust(len(name), b"y")[: len(name)])
    return data


def test_a_file_that_mentions_an_address_calls_nobody(storage: Storage, tmp_path: Path, listener: CallRecorder) -> None:
    sources.put(storage, jpeg2000(tmp_path, listener.url), "a.jp2")
    sources.put(storage, sources.rgb(64, tags={"TIFFTAG_DOCUMENTNAME": listener.url, "SRS": listener.url}), "a.tif")
    for name in ("a.jp2", "a.tif"):
        run_handler(validate, {"container_name": sources.CONTAINER, "file_name": name}, storage=storage)
    assert listener.calls == []
