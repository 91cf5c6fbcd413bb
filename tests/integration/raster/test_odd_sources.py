"""Sources that are not plain GeoTIFFs. Values are compared with those that were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.control import GroundControlPoint
from rasterio.io import MemoryFile
from rasterio.rpc import RPC

from geomill.domain.states import JobStatus
from geomill.handlers.raster.list_times import list_times
from geomill.sdk import ObjectName, Storage
from geomill.sdk.testing import run_handler
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster import sources
from tests.integration.raster.odd import published, validated

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
PLACE = Affine(10, 0, 500_000, 0, -10, 5_000_000)
DATA = np.arange(60 * 80, dtype="int16").reshape(1, 60, 80)


def unplaced(**profile: Any) -> MemoryFile:
    memory = MemoryFile()
    with memory.open(driver="GTiff", width=80, height=60, count=1, dtype="int16", **profile) as target:
        target.write(DATA)
    return memory


def test_control_points_place_a_raster(storage: Storage) -> None:
    memory = unplaced(nodata=-1)
    with rasterio.open(memory.name, "r+") as target:
        points = [GroundControlPoint(row, column, *(PLACE @ (column, row))) for row in (0, 60) for column in (0, 80)]
        target.gcps = (points, rasterio.crs.CRS.from_epsg(32633))
    sources.put(storage, bytes(memory.read()), "gcp.tif")
    validation, data, profile = published(storage, "gcp.tif")
    assert "placed by its 4 control points" in validation["warnings"][0]
    assert profile["crs"].to_epsg() == 32633
    assert profile["transform"].almost_equals(PLACE, 1e-6)
    np.testing.assert_array_equal(data[0].data, DATA[0])


def test_rpcs_place_a_raster(storage: Storage) -> None:
    memory, zeros = unplaced(nodata=-1), [0.0] * 17
    with rasterio.open(memory.name, "r+") as target:
        target.rpcs = RPC(
            height_off=0, height_scale=500, lat_off=45, lat_scale=0.3, long_off=15, long_scale=0.4,
            line_off=29.5, line_scale=30, samp_off=39.5, samp_scale=40,
            line_num_coeff=[0.0, 0.0, -1.0, *zeros], line_den_coeff=[1.0, 0.0, 0.0, *zeros],
            samp_num_coeff=[0.0, 1.0, 0.0, *zeros], samp_den_coeff=[1.0, 0.0, 0.0, *zeros],
        )  # fmt: skip
    sources.put(storage, bytes(memory.read()), "rpc.tif")
    validation, data, profile = published(storage, "rpc.tif")
    assert "not corrected for terrain" in validation["warnings"][0]
    column, row = ~profile["transform"] @ (15.0, 45.0)
    assert abs(int(data[0, int(row), int(column)]) - DATA[0, 30, 40]) <= 161  # a row and a column at most


def test_a_missing_crs_can_be_given(storage: Storage) -> None:
    sources.put(storage, bytes(unplaced(transform=PLACE).read()), "a.tif")
    assert validated(storage, "a.tif").ended.error_code == "no_crs"
    assert "source_crs" in validated(storage, "a.tif").error
    _, data, profile = published(storage, "a.tif", source_crs="EPSG:32633")
    assert (profile["crs"].to_epsg(), profile["transform"]) == (32633, PLACE)
    np.testing.assert_array_equal(data[0].data, DATA[0])
    assert validated(storage, "a.tif", source_crs="/vsicurl/http://x").ended.error_code == "bad_source_crs"


@pytest.mark.parametrize(("driver", "ending", "world"), [("PNG", "png", "pgw"), ("JPEG", "jpg", "jgw")])
def test_a_picture_with_a_world_file(storage: Storage, driver: str, ending: str, world: str) -> None:
    picture = np.repeat(np.linspace(10, 240, 80, dtype="uint8")[None], 60, axis=0)[None].repeat(3, axis=0)
    with MemoryFile() as memory:
        with memory.open(driver=driver, width=80, height=60, count=3, dtype="uint8") as target:
            target.write(picture)
        sources.put(storage, bytes(memory.read()), f"a.{ending}")
    run = validated(storage, f"a.{ending}", source_crs="EPSG:32633")
    assert run.ended.error_code == "unsupported_format"
    assert f"a.{world}" in run.error
    sources.put(storage, b"10\n0\n0\n-10\n500005\n4999995\n", f"a.{world}")
    assert validated(storage, f"a.{ending}").ended.error_code == "no_crs"
    _, data, profile = published(storage, f"a.{ending}", source_crs="EPSG:32633")
    assert profile["transform"] == PLACE
    assert np.abs(data.data.astype(int) - picture).max() <= (0 if driver == "PNG" else 4)
    sources.put(storage, b"10 0 0 east", f"a.{world}")
    assert validated(storage, f"a.{ending}", source_crs="EPSG:32633").ended.error_code == "bad_transform"


@pytest.mark.parametrize(
    ("start", "word"),
    [
        (b"EHFA_HEADER_TAG", "gdal_translate"),
        (b"SQLite format 3\0", "gdal_translate"),
        (b"<?xml", "gdal_translate"),
        (b'{"zarr_format": 3}', "Zarr"),
        (b"GRIB", "gdal_translate"),
    ],
)
def test_other_formats_are_refused_with_a_way_out(storage: Storage, start: bytes, word: str) -> None:
    sources.put(storage, start + bytes(600), "a.bin")
    run = validated(storage, "a.bin")
    assert (run.ended.error_code, run.ended.retryable) == ("unsupported_format", False)
    assert word in run.error


RAIN = np.arange(3 * 90 * 180, dtype="float32").reshape(3, 90, 180)


def netcdf(path: Path, *, variables: tuple[str, ...] = ("rain", "snow")) -> None:
    """A climate model's file: longitudes from 0 to 360, rows from south to north, three days."""
    with h5py.File(path, "w") as file:
        dimensions = {
            "time": np.array([0.0, 1.0, 2.0]), "lat": np.arange(-89.0, 90, 2), "lon": np.arange(1.0, 360, 2),
        }  # fmt: skip
        for name, values in dimensions.items():
            file[name] = values
            file[name].make_scale(name)
        file["time"].attrs["units"] = np.bytes_("days since 2024-01-01 00:00:00")
        file["time"].attrs["standard_name"] = np.bytes_("time")
        for name, unit in (("lat", "degrees_north"), ("lon", "degrees_east")):
            file[name].attrs["units"] = np.bytes_(unit)
            file[name].attrs["standard_name"] = np.bytes_({"lat": "latitude", "lon": "longitude"}[name])
        for number, name in enumerate(variables):
            data = file.create_dataset(name, data=RAIN[:, ::-1] + number * 1e6)
            for axis, scale in enumerate(("time", "lat", "lon")):
                data.dims[axis].attach_scale(file[scale])
            data.attrs["units"] = np.bytes_("mm")
        file.attrs["Conventions"] = np.bytes_("CF-1.8")


def put_netcdf(storage: Storage, **options: Any) -> None:
    name = sources.put(storage, b"", "climate.nc")
    netcdf(Path(storage.gdal_path(name)), **options)


def test_a_variable_and_a_time_step_of_netcdf(storage: Storage) -> None:
    put_netcdf(storage)
    run = validated(storage, "climate.nc")
    assert run.ended.error_code == "choose_variable", run.error
    assert "rain, snow" in run.error
    run = validated(storage, "climate.nc", variable="rain")
    assert run.ended.error_code == "choose_time", run.error
    assert "2024-01-02T00:00:00Z" in run.error
    options = {"variable": "snow", "time": "2024-01-02", "source_crs": "EPSG:4326"}
    validation, data, profile = published(storage, "climate.nc", **options)
    assert validation["times"]["datetime"] == "2024-01-02T00:00:00Z"
    assert profile["transform"] == Affine(2, 0, 0, 0, -2, 90)
    np.testing.assert_array_equal(data[0].data, RAIN[1] + 1e6)
    assert validated(storage, "climate.nc", variable="hail").ended.error_code == "choose_variable"
    assert validated(storage, "climate.nc", variable="rain", time="2025").ended.error_code == "choose_time"


def test_the_only_variable_of_netcdf_may_be_named(storage: Storage) -> None:
    put_netcdf(storage, variables=("rain",))
    options = {"time": "2024-01-02", "source_crs": "EPSG:4326"}
    assert validated(storage, "climate.nc", variable="rain", **options).success
    run = validated(storage, "climate.nc", variable="hail", **options)
    assert (run.ended.error_code, "variables rain:" in run.error) == ("choose_variable", True)


@pytest.mark.parametrize("kind", ["storage", "link", "virtual", "soft"])
def test_netcdf_that_leads_to_other_files_is_refused(storage: Storage, tmp_path: Path, kind: str) -> None:
    put_netcdf(storage, variables=("rain",))
    path = Path(storage.gdal_path(ObjectName.parse(f"bronze/{sources.CONTAINER}/climate.nc")))
    (tmp_path / "secret").write_bytes(bytes(range(200)))
    with h5py.File(path, "a") as file:
        if kind == "storage":
            file.create_dataset("secret", (200,), "u1", external=[(str(tmp_path / "secret"), 0, 200)])
        elif kind == "link":
            file["secret"] = h5py.ExternalLink(str(tmp_path / "secret"), "/")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((3,), "f8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "secret"), "time", (3,))
            file.create_virtual_dataset("secret", layout)
        else:
            file["secret"] = h5py.SoftLink("/rain")
    run = validated(storage, "climate.nc", time="2024-01-01", source_crs="EPSG:4326")
    assert (run.ended.error_code, run.ended.retryable) == ("unsupported_format", False), run.error
    assert str(tmp_path) not in run.error


def test_damaged_netcdf_is_refused(storage: Storage) -> None:
    sources.put(storage, b"\x89HDF\r\n\x1a\n" + bytes(500), "a.nc")
    assert validated(storage, "a.nc").ended.error_code == "unreadable"
    sources.put(storage, b"CDF\x01" + bytes(500), "b.nc")
    assert not validated(storage, "b.nc").success


async def test_time_steps_become_rasters_with_a_datetime_each(platform: EnginePlatform, storage: Storage) -> None:
    put_netcdf(storage, variables=("rain",))
    platform.worker(concurrency=2)
    inputs = {"container_name": sources.CONTAINER, "file_names": ["climate.nc"], "source_crs": "EPSG:4326"}
    times = ["2024-01-01", "2024-01-03"]
    job = await platform.run("process_raster_collection", {**inputs, "times": times})
    assert job.status is JobStatus.COMPLETED, job.error_message
    items = (job.result_data or {})["stac_items"]
    assert [item["properties"]["datetime"] for item in items] == [f"{day}T00:00:00Z" for day in times]
    for step, scene in zip((0, 2), (job.result_data or {})["scenes"].values(), strict=True):
        with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + scene["blob_path"]))) as dataset:
            np.testing.assert_array_equal(dataset.read(1), RAIN[step])


def test_all_times_of_netcdf_are_listed(storage: Storage) -> None:
    put_netcdf(storage, variables=("rain", "snow"))
    params = {"container_name": sources.CONTAINER, "file_name": "climate.nc", "times": ["all"]}
    run = run_handler(list_times, {**params, "variable": "snow"}, storage=storage)
    assert run.output == {"times": [f"2024-01-0{day}T00:00:00Z" for day in (1, 2, 3)]}
    assert run_handler(list_times, params, storage=storage).ended.error_code == "choose_variable"
