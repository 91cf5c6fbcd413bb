"""Zarr stores as sources. They are written here with NumPy, and values are compared with those that were written."""

from __future__ import annotations

import base64
import gzip
import io
import itertools
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.env import GDALVersion

from geomill.domain.states import JobStatus
from geomill.handlers.raster.list_times import list_times
from geomill.inspection.task import inspect_file
from geomill.raster import zarr_files, zarr_shards
from geomill.sdk import ObjectName, Storage
from geomill.sdk.testing import run_handler
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster import sources, steps
from tests.integration.raster.odd import published, validated

RAIN = np.arange(1, 3 * 45 * 90 + 1, dtype="float32").reshape(3, 45, 90)
NORTH_UP = Affine(4, 0, -180, 0, -4, 90)
LAT, LON = np.arange(88.0, -90, -4), np.arange(-178.0, 180, 4)
TIMES = {"units": "hours since 2024-01-01", "calendar": "proleptic_gregorian"}
Files = dict[str, bytes]


def chunk_bytes(data: NDArray[Any], chunks: tuple[int, ...]) -> dict[tuple[int, ...], bytes]:
    parts = {}
    for key in itertools.product(*(range(math.ceil(a / b)) for a, b in zip(data.shape, chunks, strict=True))):
        part = data[tuple(slice(i * n, (i + 1) * n) for i, n in zip(key, chunks, strict=True))]
        whole = np.zeros(chunks, data.dtype)
        whole[tuple(slice(0, n) for n in part.shape)] = part
        parts[key] = whole.tobytes()
    return parts


def version_2(
    name: str, data: NDArray[Any], chunks: tuple[int, ...], dims: list[str], fill: Any = None, **attributes: Any
) -> Files:
    metadata = {
        "zarr_format": 2, "shape": data.shape, "chunks": chunks, "dtype": data.dtype.str, "order": "C",
        "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": fill,
    }  # fmt: skip
    files = {f"{name}/{'.'.join(map(str, k))}": zlib.compress(part) for k, part in chunk_bytes(data, chunks).items()}
    files[f"{name}/.zarray"] = json.dumps(metadata).encode()
    files[f"{name}/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": dims, **attributes}).encode()
    return {".zgroup": b'{"zarr_format": 2}', **files}


def version_3(
    name: str, data: NDArray[Any], chunks: tuple[int, ...], dims: list[str], fill: Any = 0, **attributes: Any
) -> Files:
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": data.shape, "data_type": data.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "gzip", "configuration": {"level": 1}},
        ],
        "fill_value": fill, "attributes": attributes, "dimension_names": dims,
    }  # fmt: skip
    parts = chunk_bytes(data, chunks)
    files = {f"{name}/c/{'/'.join(map(str, key))}": gzip.compress(part) for key, part in parts.items()}
    group = b'{"zarr_format": 3, "node_type": "group", "attributes": {}}'
    return {"zarr.json": group, **files, f"{name}/zarr.json": json.dumps(metadata).encode()}


VERSIONS = pytest.mark.parametrize("version", [version_2, version_3])
Version = Callable[..., Files]


def climate(version: Version, *, variables: tuple[str, ...] = ("rain",), lat: NDArray[Any] = LAT) -> Files:
    files = {
        **version("time", np.array([0, 24, 48]), (2,), ["time"], **TIMES),
        **version("lat", lat, (20,), ["lat"], units="degrees_north"),
        **version("lon", LON, (90,), ["lon"], units="degrees_east"),
    }
    for number, name in enumerate(variables):
        files |= version(name, RAIN + number * 100_000, (2, 20, 32), ["time", "lat", "lon"], units="mm")
    return files


def put(
    storage: Storage, files: Files, name: str = "climate.zarr.zip", folder: str = "", method: int = 0
) -> ObjectName:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        for path, content in files.items():
            archive.writestr(folder + path, content)
    return sources.put(storage, memory.getvalue(), name)


def put_folder(storage: Storage, files: Files, folder: str = "climate.zarr") -> str:
    """Put the store as a folder into bronze. Returns the file that names it."""
    for path, content in files.items():
        sources.put(storage, content, f"{folder}/{path}")
    return f"{folder}/{'zarr.json' if 'zarr.json' in files else '.zgroup'}"


MISSING = (2**64 - 1, 2**64 - 1)


def crc32c(data: bytes) -> int:
    """CRC-32C by polynomial division, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            register = (register >> 1) ^ (0x82F63B78 if (register ^ (byte >> bit)) & 1 else 0)
    return register ^ 0xFFFFFFFF


def sharded(
    name: str,
    data: NDArray[Any],
    shard: tuple[int, ...],
    chunk: tuple[int, ...],
    dims: list[str],
    *,
    at_end: bool = True,
    checksum: bool = True,
    left_out: tuple[int, ...] = (),
    **attributes: Any,
) -> Files:
    """An array of version 3 in shards. `left_out` are the numbers of chunks that no shard stores."""
    index_codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    sharding = {
        "chunk_shape": chunk,
        "codecs": [index_codecs[0], {"name": "gzip", "configuration": {"level": 1}}],
        "index_codecs": [*index_codecs, {"name": "crc32c"}] if checksum else index_codecs,
        "index_location": "end" if at_end else "start",
    }
    files = version_3(name, data, shard, dims, **attributes)
    files = changed(files, f"{name}/zarr.json", codecs=[{"name": "sharding_indexed", "configuration": sharding}])
    for key, part in chunk_bytes(data, shard).items():
        inner = chunk_bytes(np.frombuffer(part, data.dtype).reshape(shard), chunk)
        index_bytes = 16 * len(inner) + 4 * checksum
        body, places, begin = b"", [], 0 if at_end else index_bytes
        for number, content in enumerate(inner.values()):
            packed = b"" if number in left_out else gzip.compress(content)
            places.append((begin + len(body), len(packed)) if packed else MISSING)
            body += packed
        index = b"".join(struct.pack("<QQ", *place) for place in places)
        index += struct.pack("<I", crc32c(index)) if checksum else b""
        files[f"{name}/c/{'/'.join(map(str, key))}"] = body + index if at_end else index + body
    return files


def changed(files: Files, path: str, **fields: Any) -> Files:
    return {**files, path: json.dumps({**json.loads(files[path]), **fields}).encode()}


@VERSIONS
@pytest.mark.parametrize("folder", ["", "climate.zarr/"])
def test_a_variable_and_a_time_step(storage: Storage, version: Version, folder: str) -> None:
    put(storage, climate(version, variables=("rain", "snow")), folder=folder)
    run = validated(storage, "climate.zarr.zip")
    assert run.ended.error_code == "choose_variable", run.error
    assert "rain, snow" in run.error
    run = validated(storage, "climate.zarr.zip", variable="rain")
    assert run.ended.error_code == "choose_time", run.error
    assert "2024-01-02T00:00:00Z" in run.error
    validation, data, profile = published(storage, "climate.zarr.zip", variable="snow", time="2024-01-02")
    assert validation["times"]["datetime"] == "2024-01-02T00:00:00Z"
    assert "EPSG:4326 is taken" in validation["warnings"][0]
    assert (profile["transform"], profile["crs"].to_epsg()) == (NORTH_UP, 4326)
    np.testing.assert_array_equal(data[0].data, RAIN[1] + 100_000)


@VERSIONS
def test_rows_from_south_to_north(storage: Storage, version: Version) -> None:
    put(storage, climate(version, lat=LAT[::-1]))
    _, data, profile = published(storage, "climate.zarr.zip", time="2024-01-03")
    assert profile["transform"] == NORTH_UP
    np.testing.assert_array_equal(data[0].data, RAIN[2, ::-1])


@VERSIONS
@pytest.mark.parametrize(
    "mapping",
    [
        {"crs_wkt": rasterio.crs.CRS.from_epsg(32633).to_wkt()},
        {"spatial_ref": rasterio.crs.CRS.from_epsg(32633).to_wkt()},
        {
            "grid_mapping_name": "transverse_mercator", "longitude_of_central_meridian": 15.0,
            "latitude_of_projection_origin": 0.0, "scale_factor_at_central_meridian": 0.9996,
            "false_easting": 500000.0, "false_northing": 0.0, "semi_major_axis": 6378137.0,
            "inverse_flattening": 298.257223563,
        },
    ],
)  # fmt: skip
def test_a_projection_by_its_grid_mapping(storage: Storage, version: Version, mapping: dict[str, Any]) -> None:
    heights = np.arange(40 * 60, dtype="int16").reshape(40, 60)
    put(storage, {
        **version("y", np.arange(4_999_995.0, 4_999_595, -10), (40,), ["y"]),
        **version("x", np.arange(500_005.0, 500_605, 10), (60,), ["x"]),
        **version("spatial_ref", np.zeros(1, "int64"), (1,), ["one"], **mapping),
        **version("height", heights, (16, 16), ["y", "x"], None if version is version_2 else 0,
                  grid_mapping="spatial_ref", scale_factor=0.5, add_offset=3.0),
    }, "dem.zip")  # fmt: skip
    validation, data, profile = published(storage, "dem.zip")
    assert profile["transform"] == Affine(10, 0, 500_000, 0, -10, 5_000_000)
    expected = rasterio.crs.CRS.from_epsg(32633).to_dict(projjson=True)["conversion"]["parameters"]
    assert [part["value"] for part in profile["crs"].to_dict(projjson=True)["conversion"]["parameters"]] == [
        part["value"] for part in expected
    ]
    np.testing.assert_array_equal(data[0].data, heights)
    assert (validation["facts"]["nodata"], data.mask.any()) == (None, False)


def test_nodata_and_chunks_that_are_not_stored(storage: Storage) -> None:
    """Version 2 has one value for both. In version 3 nodata is an attribute, which xarray writes as base64."""
    data = RAIN[:1].copy()
    data[0, :20, :32] = -1
    expected = data[0].copy()
    files = climate(version_2) | version_2("rain", data, (1, 20, 32), ["time", "lat", "lon"], fill=-1.0)
    del files["rain/0.0.0"]
    files |= version_2("time", np.array([0.0]), (1,), ["time"], **TIMES)
    put(storage, files)
    validation, values, _ = published(storage, "climate.zarr.zip")
    assert validation["facts"]["nodata"] == -1
    np.testing.assert_array_equal(values[0].filled(-1), expected)
    assert values.mask[0].sum() == 20 * 32
    assert any("1 of 9 chunks" in warning for warning in validation["warnings"])

    data[0, :20, :32], data[0, 0, 40] = 0, -1
    nodata = base64.b64encode(struct.pack("<d", -1.0)).decode()
    files = climate(version_3) | version_3("rain", data, (1, 20, 32), ["time", "lat", "lon"], _FillValue=nodata)
    files |= version_3("time", np.array([0.0]), (1,), ["time"], **TIMES)
    del files["rain/c/0/0/0"]
    put(storage, files)
    validation, values, _ = published(storage, "climate.zarr.zip")
    assert validation["facts"]["nodata"] == -1
    np.testing.assert_array_equal(values[0].data, data[0])
    assert values.mask[0].sum() == 1
    put(storage, changed(files, "rain/zarr.json", fill_value=7))
    assert "write all chunks" in validated(storage, "climate.zarr.zip").error


@pytest.mark.parametrize("layout", ["ZARR_V2", "ZARR_V3"])
@pytest.mark.parametrize("compressor", ["BLOSC", "ZSTD", "NONE"])
def test_stores_that_gdal_wrote(storage: Storage, tmp_path: Path, layout: str, compressor: str) -> None:
    if layout == "ZARR_V3" and GDALVersion.runtime() < GDALVersion(3, 12):
        pytest.skip("this GDAL writes a draft of version 3, which is refused")
    place = Affine(10, 0, 500_000, 0, -10, 5_000_000)
    folder, data = tmp_path / "a.zarr", np.arange(60 * 80, dtype="int16").reshape(60, 80)
    profile = {"width": 80, "height": 60, "count": 1, "dtype": "int16", "crs": "EPSG:32633", "transform": place}
    with rasterio.open(folder, "w", driver="Zarr", FORMAT=layout, COMPRESS=compressor, **profile) as target:
        target.write(data, 1)
    put(storage, {str(path.relative_to(tmp_path)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    _, values, profile = published(storage, "climate.zarr.zip")
    assert (profile["transform"], profile["crs"].to_epsg()) == (place, 32633)
    np.testing.assert_array_equal(values[0].data, data)


INNER = [{"name": "bytes"}, {"name": "pickle"}]
BYTES = [{"name": "bytes"}]


def shard_codec(**configuration: Any) -> list[dict[str, Any]]:
    whole = {"chunk_shape": [1, 5, 8], "codecs": BYTES, "index_codecs": BYTES, **configuration}
    return [{"name": "sharding_indexed", "configuration": whole}]


PICKLED = [{"id": "pickle"}]


@pytest.mark.parametrize(
    ("files", "code", "word"),
    [
        (changed(climate(version_2), "rain/.zarray", dtype="|O"), "unsupported_format", "'|O'"),
        (changed(climate(version_2), "rain/.zarray", filters=PICKLED), "unsupported_format", "filters"),
        (changed(climate(version_2), "rain/.zarray", compressor=PICKLED[0]), "unsupported_format", "pickle"),
        (changed(climate(version_2), "rain/.zarray", fill_value={}), "unsupported_format", "fill value"),
        (changed(climate(version_2), "rain/.zarray", chunks=[1, 20]), "unsupported_format", "chunks"),
        (changed(climate(version_2), "rain/.zarray", chunks=[1, 20000, 32000]), "block_too_large", "smaller chunks"),
        (changed(climate(version_2), "rain/.zarray", shape=[3, 10**6, 10**6]), "too_large", "chunks in one layer"),
        (climate(version_2) | {"rain/1.0.0": bytes(50_000)}, "unsafe_archive", "unpack to more"),
        (changed(climate(version_2), "rain/.zattrs", _ARRAY_DIMENSIONS=None), "unsupported_dimensions", "names"),
        (changed(climate(version_2), "rain/.zattrs", _ARRAY_DIMENSIONS=["t", "lat", "lon"]),
         "unsupported_dimensions", "not a time"),
        (changed(climate(version_2), "rain/.zattrs", _ARRAY_DIMENSIONS=["time", "lon", "lat"]),
         "unsupported_dimensions", "transpose"),
        (climate(version_2) | {"rain/.zarray": b"[" * 100_000}, "unreadable", "not JSON"),
        (climate(version_2) | {"rain/1.0.0": b"no zlib"}, "unreadable", "damaged"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(codecs=INNER)),
         "unsupported_format", "pickle"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(codecs=shard_codec())),
         "unsupported_format", "sharding_indexed"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(index_codecs=INNER)),
         "unsupported_format", "index has the codecs bytes, pickle"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(chunk_shape=[2, 3, 32])),
         "unsupported_format", "not whole chunks"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(chunk_shape=[2, 20])),
         "unsupported_format", "not whole chunks"),
        (changed(climate(version_3), "rain/zarr.json", codecs=[*shard_codec(), {"name": "gzip"}]),
         "unsupported_format", "sharding_indexed, gzip"),
        (changed(climate(version_3), "rain/zarr.json", codecs=shard_codec(chunk_shape=[1, 1, 1]),
                 chunk_grid={"name": "regular", "configuration": {"chunk_shape": [3, 1000, 1000]}}),
         "unsupported_format", "shards of 3,000,000 chunks"),
        (changed(climate(version_3), "rain/zarr.json", storage_transformers=[{}]),
         "unsupported_format", "transformers"),
        (changed(climate(version_3), "rain/zarr.json", data_type="string"), "unsupported_format", "'string'"),
        ({"a.tif": b"II*\0"}, "unsupported_format", "upload the raster in it"),
        ({"a.zarr/.zgroup": b"{}", "b.zarr/.zgroup": b"{}"}, "unsupported_format", "several Zarr stores"),
        ({".zgroup": b"{}"}, "unsupported_format", "without an array"),
    ],
)  # fmt: skip
def test_stores_that_are_refused(storage: Storage, files: Files, code: str, word: str) -> None:
    put(storage, files)
    run = validated(storage, "climate.zarr.zip", time="2024-01-03")
    assert (run.ended.error_code, run.ended.retryable) == (code, False), run.error
    assert word in run.error
    assert "/tmp" not in run.error


@VERSIONS
@pytest.mark.parametrize("folder", ["climate.zarr", "a/b/climate"])
def test_a_folder_is_a_store_by_the_name_of_its_root(storage: Storage, version: Version, folder: str) -> None:
    files = climate(version, variables=("rain", "snow"))
    root = put_folder(storage, files, folder)
    put_folder(storage, climate(version, variables=("other",)), f"{folder}2")  # beside it, with the same beginning
    assert validated(storage, root).ended.error_code == "choose_variable"
    assert "rain, snow: name" in validated(storage, root).error
    validation, data, profile = published(storage, root, variable="rain", time="2024-01-02")
    assert validation["facts"]["acquired"] == "2024-01-02T00:00:00Z"
    assert profile["transform"] == NORTH_UP
    np.testing.assert_array_equal(data[0].data, RAIN[1])


def test_a_folder_is_bounded_and_read_from_its_own_container(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    root = put_folder(storage, climate(version_3))
    sources.put(storage, b"{}", "elsewhere.zarr/.zgroup")
    assert "without an array" in validated(storage, "elsewhere.zarr/.zgroup").error
    monkeypatch.setattr(zarr_files, "MOST_FILES", 10)
    assert "the maximum is 10" in validated(storage, root).error


SHARDED = [(3, 40, 64), (2, 20, 90), (1, 60, 96), (3, 60, 120)]


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("kind", ["zip", "deflated", "folder"])
@pytest.mark.parametrize("shard", SHARDED)
def test_chunks_come_out_of_their_shards(
    storage: Storage, shard: tuple[int, ...], kind: str, checksum: bool, at_end: bool
) -> None:
    chunk = (1, shard[1] // 2, shard[2] // 2)
    dims = ["time", "lat", "lon"]
    files = {**climate(version_3), **sharded("rain", RAIN, shard, chunk, dims, at_end=at_end, checksum=checksum)}
    if kind == "folder":
        name = put_folder(storage, files)
    else:
        put(storage, files, method=zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED)
        name = "climate.zarr.zip"
    for step, day in ((0, "2024-01-01"), (2, "2024-01-03")):
        _, data, _ = published(storage, name, time=day)
        np.testing.assert_array_equal(data[0].data, RAIN[step])


def test_a_chunk_that_no_shard_stores_has_the_fill_value(storage: Storage) -> None:
    dims = ["time", "lat", "lon"]
    files = sharded("rain", RAIN, (1, 60, 96), (1, 30, 48), dims, left_out=(3,), _FillValue=0)
    put(storage, {**climate(version_3), **files})
    validation, data, _ = published(storage, "climate.zarr.zip", time="2024-01-02")
    assert "1 of 4 chunks are not stored" in " ".join(validation["warnings"])
    assert data[0].mask[30:, 48:].all()
    assert not data[0].mask[:30].any()
    np.testing.assert_array_equal(data[0].data[:30], RAIN[1][:30])


def test_crc32c_is_that_of_rfc_3720() -> None:
    assert zarr_shards.crc32c(b"123456789") == crc32c(b"123456789") == 0xE3069283
    assert zarr_shards.crc32c(bytes(32)) == 0x8A9136AA


def broken(shard: bytes, number: int) -> bytes:
    """Break a shard with its index at the end, of four chunks and without a checksum."""
    index = [list(struct.unpack_from("<QQ", shard, len(shard) - 64 + 16 * n)) for n in range(4)]
    broken_shards = [
        lambda: shard[:-1],
        lambda: shard[:40],
        lambda: b"",
        lambda: index[0].__setitem__(0, len(shard)),
        lambda: index[0].__setitem__(1, 2**40),
        lambda: index[0].__setitem__(0, 2**63),
        lambda: index[0].__setitem__(1, 3),
    ]
    changed_shard = broken_shards[number]()
    if changed_shard is not None:
        return changed_shard
    return shard[:-64] + b"".join(struct.pack("<QQ", *place) for place in index)


@pytest.mark.parametrize("number", range(7))
def test_damaged_shards_are_refused(storage: Storage, number: int) -> None:
    dims = ["time", "lat", "lon"]
    files = {**climate(version_3), **sharded("rain", RAIN, (1, 60, 96), (1, 30, 48), dims, checksum=False)}
    files["rain/c/0/0/0"] = broken(files["rain/c/0/0/0"], number)
    put(storage, files)
    run = validated(storage, "climate.zarr.zip", time="2024-01-01")
    assert (run.ended.error_code, run.ended.retryable) == ("unreadable", False), run.error
    assert validated(storage, "climate.zarr.zip", time="2024-01-02").success


def test_an_index_with_a_wrong_checksum_is_refused(storage: Storage) -> None:
    dims = ["time", "lat", "lon"]
    files = {**climate(version_3), **sharded("rain", RAIN, (1, 60, 96), (1, 30, 48), dims)}
    shard = files["rain/c/0/0/0"]
    files["rain/c/0/0/0"] = shard[:-20] + bytes([shard[-20] ^ 1]) + shard[-19:]
    put(storage, files)
    run = validated(storage, "climate.zarr.zip", time="2024-01-01")
    assert (run.ended.error_code, "damaged shard" in run.error) == ("unreadable", True)


def test_consolidated_metadata_cannot_lead_elsewhere(storage: Storage) -> None:
    """GDAL would believe them rather than the metadata of the arrays, which are checked."""
    files = climate(version_2)
    other = {**json.loads(files["rain/.zarray"]), "dtype": "|O", "shape": [3, 9, 9]}
    files[".zmetadata"] = json.dumps({"zarr_consolidated_format": 1, "metadata": {"rain/.zarray": other}}).encode()
    put(storage, files | {"../../lat/0": b"x", "/rain/0.0.0": b"x"})
    _, data, _ = published(storage, "climate.zarr.zip", time="2024-01-01")
    np.testing.assert_array_equal(data[0].data, RAIN[0])


def test_damaged_zip_files_are_refused(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    name = put(storage, climate(version_2))
    monkeypatch.setattr(zarr_files, "MOST_FILES", 10)
    assert "the maximum is 10" in validated(storage, "climate.zarr.zip").error
    sources.put(storage, storage.sync.read(name, 0, 500), "half.zip")
    assert validated(storage, "half.zip").ended.error_code == "unreadable"


def test_a_zip_file_is_stored_or_deflated(storage: Storage) -> None:
    put(storage, climate(version_3), method=zipfile.ZIP_DEFLATED)
    assert validated(storage, "climate.zarr.zip", time="2024-01-01").success
    put(storage, climate(version_3), method=zipfile.ZIP_BZIP2)
    assert validated(storage, "climate.zarr.zip", time="2024-01-01").ended.error_code == "unsafe_archive"


@pytest.mark.parametrize("folder", ["", "climate.zarr/"])
def test_a_look_tells_variables_and_steps(storage: Storage, tmp_path: Path, folder: str) -> None:
    put(storage, climate(version_3, variables=("rain", "snow")), folder=folder)

    def look(**options: Any) -> dict[str, Any]:
        source = {"container_name": sources.CONTAINER, "file_name": "climate.zarr.zip"}
        params = {"source": source, "folder": str(tmp_path), "options": options, "copied_bytes": 10_000_000}
        return steps.ok(run_handler(inspect_file, params, storage=storage))

    def remedy(inspection: dict[str, Any]) -> Any:
        return next(iter(problem["remedies"] for problem in inspection["problems"] if problem["severity"] == "error"))

    first = look()
    assert (first["data_type"], first["acceptable"]) == ("raster", False)
    assert [(option["option"], option["choices"]) for option in remedy(first)] == [("variable", ["rain", "snow"])]
    second = look(variable="rain")
    days = [f"2024-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    assert [(option["option"], option["choices"]) for option in remedy(second)] == [("time", days)]
    third = look(variable="rain", time=days[0])
    assert (third["acceptable"], third["format"], third["crs"]["code"]) == (True, "Zarr", "EPSG:4326")
    assert third["raster"]["bands"][0]["maximum"] == RAIN[0].max()


async def test_time_steps_become_rasters_with_a_datetime_each(platform: EnginePlatform, storage: Storage) -> None:
    put(storage, climate(version_3))
    platform.worker(concurrency=2)
    inputs = {"container_name": sources.CONTAINER, "file_names": ["climate.zarr.zip"]}
    times = ["2024-01-01", "2024-01-03"]
    job = await platform.run("process_raster_collection", {**inputs, "times": times})
    assert job.status is JobStatus.COMPLETED, job.error_message
    items = (job.result_data or {})["stac_items"]
    assert [item["properties"]["datetime"] for item in items] == [f"{day}T00:00:00Z" for day in times]
    for step, scene in zip((0, 2), (job.result_data or {})["scenes"].values(), strict=True):
        with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + scene["blob_path"]))) as dataset:
            np.testing.assert_array_equal(dataset.read(1), RAIN[step])


async def test_all_time_steps_become_a_series(platform: EnginePlatform, storage: Storage) -> None:
    root = put_folder(storage, climate(version_3, variables=("rain", "snow")))
    platform.worker(concurrency=2)
    inputs = {"container_name": sources.CONTAINER, "file_names": [root], "variable": "snow", "times": ["all"]}
    job = await platform.run("process_raster_collection", inputs)
    assert job.status is JobStatus.COMPLETED, job.error_message
    result = job.result_data or {}
    days = [f"2024-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    assert [item["properties"]["datetime"] for item in result["stac_items"]] == days
    for step, scene in enumerate(result["scenes"].values()):
        with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + scene["blob_path"]))) as dataset:
            np.testing.assert_array_equal(dataset.read(1), RAIN[step] + 100_000)


def listed_times(storage: Storage, file_name: str, **params: Any) -> Any:
    place = {"container_name": sources.CONTAINER, "file_name": file_name, "times": ["all"]}
    return run_handler(list_times, {**place, **params}, storage=storage)


def test_steps_that_cannot_all_be_taken_are_refused(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    name = put_folder(storage, climate(version_2))
    assert listed_times(storage, name, times=["2024-01-01"]).output == {"times": ["2024-01-01"]}
    assert len(listed_times(storage, name).output["times"]) == 3
    with monkeypatch.context() as change:
        change.setattr("geomill.handlers.raster.list_times.MOST_STEPS", 2)
        many = listed_times(storage, name)
        assert (many.ended.error_code, "has 3 time steps, and a collection at most 2" in many.error) == (
            "too_large",
            True,
        )
    alike = changed(climate(version_2), "time/.zattrs", units="hours since 2024-01-01", calendar="360_day")
    name = put_folder(storage, alike, "alike.zarr")
    assert listed_times(storage, name).ended.error_code == "unsupported_dimensions"
    sources.put(storage, sources.rgb(50), "plain.tif")
    plain = listed_times(storage, "plain.tif")
    assert (plain.ended.error_code, "leave out times" in plain.error) == ("unsupported_dimensions", True)
