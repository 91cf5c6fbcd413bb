"""A bad file is refused at once and for good, with the reason, and leaves nothing behind."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.io import MemoryFile

from geomill.handlers.raster.create_cog import create_cog
from geomill.handlers.raster.generate_tiling_scheme import generate_tiling_scheme
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.handlers.raster.validate import validate
from geomill.sdk import Storage
from geomill.sdk.testing import HandlerRun, run_handler
from tests.integration.raster import sources
from tests.integration.raster.checks import sizes
from tests.integration.raster.sources import SyntheticRaster
from tests.integration.raster.steps import ok, tiling, validated

VRT = """<VRTDataset rasterXSize="20" rasterYSize="20"><SRS>EPSG:4326</SRS>
<GeoTransform>0, 1, 0, 10, 0, -1</GeoTransform><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">
<SourceFilename relativetoVRT="0">/etc/passwd</SourceFilename></VRTRasterBand></VRTDataset>"""


def changed(raster: SyntheticRaster, **fields: Any) -> bytes:
    for name, value in fields.items():
        setattr(raster, name, value)
    return raster.encode()


def huge() -> bytes:
    """A few hundred bytes that claim terabytes."""
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=1_500_000, height=1_500_000, count=1, dtype="uint8", crs="EPSG:4326",
            transform=sources.DEGREES, tiled=True, blockxsize=16384, blockysize=16384, SPARSE_OK=True, BIGTIFF="YES",
        ):  # fmt: skip
            pass
        return bytes(memory.read())


def bomb() -> bytes:
    """Less than a megabyte that claims a hundred gigabytes, in blocks that are all zeros."""
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=320_000, height=320_000, count=1, dtype="uint8", crs="EPSG:4326",
            transform=sources.DEGREES, tiled=True, blockxsize=4096, blockysize=4096, SPARSE_OK=True, BIGTIFF="YES",
            compress="deflate",
        ):  # fmt: skip
            pass
        return bytes(memory.read())


def one_tile() -> bytes:
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=40_000, height=40_000, count=1, dtype="uint8", crs="EPSG:4326", tiled=True,
            transform=sources.DEGREES, blockxsize=32768, blockysize=32768, compress="deflate", SPARSE_OK=True,
        ):  # fmt: skip
            pass
        return bytes(memory.read())


def without_place() -> bytes:
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        return changed(sources.rgb(64), transform=Affine.identity())


def infinite() -> bytes:
    """The tie point of a good file, overwritten: nobody writes such a thing by intention."""
    good, point = sources.dem(64).encode(), struct.pack("<d", 500_000.0)
    assert good.count(point) >= 1
    return good.replace(point, struct.pack("<d", math.nan), 1)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "text": (lambda: b"not a raster at all", "unsupported_format"),
    "empty": (lambda: b"", "unsupported_format"),
    "vrt": (VRT.encode, "unsupported_format"),
    "png": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "unsupported_format"),
    "only a beginning": (lambda: sources.rgb().encode()[:4], "unreadable"),
    "noise": (lambda: b"II*\x00" + np.random.default_rng(1).bytes(5_000), "unreadable"),
    "huge": (huge, "too_large"),
    "bomb": (bomb, "too_large"),
    "one tile": (one_tile, "block_too_large"),
    "no crs": (lambda: changed(sources.rgb(64), crs=None), "no_crs"),
    "no place": (without_place, "no_georeference"),
    "nan": (infinite, "bad_transform"),
    "flat pixels": (lambda: changed(sources.rgb(64), transform=Affine(10, 0, 5, 0, 0, 5)), "bad_transform"),
    "complex": (lambda: SyntheticRaster(np.ones((1, 64, 64), "complex64")).encode(), "unsupported_type"),
    "local crs": (lambda: changed(sources.rgb(64), crs='LOCAL_CS["somewhere",UNIT["metre",1]]'), "crs_unusable"),
}


@pytest.mark.parametrize("kind", BAD)
def test_it_is_refused_with_a_reason(storage: Storage, kind: str) -> None:
    make, code = BAD[kind]
    sources.put(storage, make())
    run = run_handler(validate, {"container_name": sources.CONTAINER, "file_name": "a.tif"}, storage=storage)
    assert_refused(run, code)
    assert "passwd" not in run.error
    assert "root:" not in run.error
    assert sizes(storage, "cogs") == {}


def assert_refused(run: HandlerRun, code: str) -> None:
    assert not run.success
    assert (run.ended.error_code, run.ended.retryable) == (code, False), run.error
    assert len(run.error) > 20


def test_a_missing_file_is_told(storage: Storage) -> None:
    sources.put(storage, b"x", "other.tif")
    run = run_handler(validate, {"container_name": sources.CONTAINER, "file_name": "a.tif"}, storage=storage)
    assert_refused(run, "not_found")


def test_a_name_that_leads_elsewhere_is_refused(storage: Storage) -> None:
    run = run_handler(validate, {"container_name": sources.CONTAINER, "file_name": "../../etc/passwd"}, storage=storage)
    assert_refused(run, "invalid_name")


@pytest.mark.parametrize("layout", [{}, {"compress": "deflate"}, {"tiled": True, "compress": "lzw"}])
def test_pixels_that_are_missing_end_the_work_and_nothing_is_published(
    storage: Storage, layout: dict[str, Any]
) -> None:
    """The header is whole and at the front, so that only reading the pixels shows what is missing."""
    sources.put(storage, sources.rgb(700, options=layout))
    validation, scheme = tiling(storage)
    path = Path(storage.gdal_path(sources.ObjectName("bronze", sources.CONTAINER, "a.tif")))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if b"II*" in data[:3] else data)
    source = {**validation["source"], "etag": None}
    run = run_handler(create_cog, {"source": source, "facts": validation["facts"], "blob_prefix": "x"}, storage=storage)
    assert_refused(run, "unreadable")
    failed = 0
    for batch in scheme["batches"]:
        params = {"source": source, "plan": scheme["plan"], "tiles": batch, "blob_prefix": "y"}
        failed += not run_handler(process_tile_batch, params, storage=storage).success
    assert failed
    assert not [name for name in sizes(storage, "cogs") if name.startswith("x/")]


def test_a_source_that_is_replaced_meanwhile_is_noticed(storage: Storage) -> None:
    sources.put(storage, sources.rgb(300))
    validation = validated(storage)
    sources.put(storage, sources.rgb(310))
    run = run_handler(
        create_cog, {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x"}, storage=storage
    )
    assert_refused(run, "source_changed")


@pytest.mark.parametrize(
    ("crs", "transform", "target", "code"),
    [
        ("EPSG:3413", Affine(10_000, 0, -1_000_000, 0, -10_000, 1_000_000), "EPSG:4326", "covers_pole"),
        ("EPSG:3413", Affine(1_000, 0, -100_000, 0, -1_000, 100_000), "EPSG:3857", "outside_target"),
        ("EPSG:32660", sources.ANTIMERIDIAN, "EPSG:3857", "crosses_antimeridian"),
        (sources.UTM, sources.UTM_PLACE, "EPSG:999999", "bad_target_crs"),
        (sources.UTM, sources.UTM_PLACE, "nonsense", "bad_target_crs"),
    ],
)
def test_what_cannot_be_warped_is_refused(
    storage: Storage, crs: str, transform: Affine, target: str, code: str
) -> None:
    sources.put(storage, sources.rgb(200, crs=crs, transform=transform))
    validation = validated(storage)
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x", "target_crs": target}
    assert_refused(run_handler(create_cog, params, storage=storage), code)
    assert_refused(run_handler(generate_tiling_scheme, params, storage=storage), code)
    assert sizes(storage, "cogs") == {}


def test_a_polar_raster_keeps_its_crs(storage: Storage) -> None:
    place = Affine(10_000, 0, -1_000_000, 0, -10_000, 1_000_000)
    sources.put(storage, sources.rgb(200, crs="EPSG:3413", transform=place))
    validation = validated(storage)
    assert validation["facts"]["bounds_4326"][3] == 90
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x", "target_crs": "source"}
    ok(run_handler(create_cog, params, storage=storage))


def test_a_raster_without_a_valid_pixel_is_told_so(storage: Storage) -> None:
    raster = sources.dem(200)
    raster.data[:] = -9999
    sources.put(storage, raster)
    validation = validated(storage)
    assert "no valid pixel" in " ".join(validation["warnings"])
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x"}
    assert_refused(run_handler(create_cog, params, storage=storage), "empty")


def test_jpeg_for_measurements_is_refused_at_the_first_step(storage: Storage) -> None:
    sources.put(storage, sources.dem(100))
    params = {"container_name": sources.CONTAINER, "file_name": "a.tif", "output_tier": "visualization"}
    assert_refused(run_handler(validate, params, storage=storage), "tier_unfit")
