"""A look into a file tells what is in it, and every problem at once with the option that solves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import shapely
from rasterio.control import GroundControlPoint
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import from_origin

from geomill.contract.inspection import Inspection, Severity
from geomill.inspection.task import inspect_file
from geomill.sdk import Storage
from geomill.sdk.testing import folder_storage, run_handler
from tests.integration.vector import sources

SQUARES = sources.squares(20)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return folder_storage(tmp_path / "zones")


@pytest.fixture
def look(storage: Storage, tmp_path: Path) -> Any:
    def run(name: str, data: bytes, *, copied_bytes: int = 10_000_000, **options: Any) -> Inspection:
        sources.put(storage, name, data)
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        params = {
            "source": {"container_name": sources.CONTAINER, "file_name": name},
            "folder": str(folder),
            "options": options,
            "copied_bytes": copied_bytes,
        }
        done = run_handler(inspect_file, params, storage=storage)
        assert done.success, done.error
        return Inspection.model_validate(done.output)

    return run


def codes(inspection: Inspection, severity: Severity = Severity.ERROR) -> list[str]:
    return [problem.code for problem in inspection.problems if problem.severity is severity]


def geotiff(path: Path, **changes: Any) -> bytes:
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": 8,
        "height": 6,
        "count": 2,
        "dtype": "int16",
        "nodata": -9999,
        "crs": "EPSG:32633",
        "transform": from_origin(500_000, 5_000_000, 10, 10),
        **changes,
    }
    with rasterio.open(path, "w", **profile) as dataset:
        for band in range(1, profile["count"] + 1):
            dataset.write(np.full((profile["height"], profile["width"]), band, profile["dtype"]), band)
    return path.read_bytes()


def test_a_sound_layer(look: Any, tmp_path: Path) -> None:
    data = sources.encoded(tmp_path, sources.table(SQUARES), kind="Polygon", crs="EPSG:4326")
    inspection = look("roads.gpkg", data, datetime="2024-01-01")
    assert (inspection.acceptable, inspection.complete, inspection.problems) == (True, True, [])
    assert (inspection.format, inspection.data_type, inspection.size_bytes) == ("GeoPackage", "vector", len(data))
    (layer,) = inspection.layers
    assert (layer.name, layer.geometry_type, layer.rows) == ("made", "Polygon", 20)
    assert [(column.source, column.type) for column in layer.columns] == [("name", "text"), ("number", "bigint")]
    assert inspection.crs is not None
    assert (inspection.crs.code, inspection.crs.known_from) == ("EPSG:4326", "file")
    assert inspection.extent == pytest.approx(shapely.total_bounds(SQUARES).tolist())


def test_all_problems_of_a_layer_are_told_at_once(look: Any, tmp_path: Path) -> None:
    mixed = sources.table([shapely.Point(1, 2), shapely.LineString([(0, 0), (1, 1)])])
    inspection = look(
        "mixed.parquet",
        sources.parquet(tmp_path, mixed, crs=None),
        target_crs="nowhere",
        id_column="missing",
        datetime="yesterday",
    )
    assert not inspection.acceptable
    assert set(codes(inspection)) == {"no_crs", "mixed_geometries", "bad_crs", "no_such_column", "bad_datetime"}
    remedies = {remedy.option: remedy for problem in inspection.problems for remedy in problem.remedies}
    assert remedies["source_crs"].value == "EPSG:4326"  # the coordinates fit
    assert remedies["mixed_geometries"].value == "split"
    assert remedies["id_column"].choices == ["name", "number"]


def test_the_options_solve_the_problems(look: Any, tmp_path: Path) -> None:
    mixed = sources.table([shapely.Point(1, 2), shapely.LineString([(0, 0), (1, 1)])])
    data = sources.parquet(tmp_path, mixed, crs=None)
    options = {
        remedy.option: remedy.value for problem in look("m.parquet", data).problems for remedy in problem.remedies
    }
    mended = look("m.parquet", data, **{**options, "datetime": "2024-01-01"})
    assert mended.problems == []
    assert mended.crs is not None
    assert mended.crs.known_from == "option"


def test_layers_to_choose_from_are_listed_with_their_columns(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.gpkg"
    sources.write(path, sources.table(SQUARES, a=list(range(20))), layer="one", kind="Polygon")
    sources.write(path, sources.table([shapely.Point(1, 2)], b=["x"]), layer="two", kind="Point")
    data = path.read_bytes()
    inspection = look("two.gpkg", data)
    assert codes(inspection) == ["choose_layer"]
    assert inspection.problems[0].remedies[0].choices == ["one", "two"]
    assert [(layer.name, layer.rows, layer.columns[0].name) for layer in inspection.layers] == [
        ("one", 20, "a"),
        ("two", 1, "b"),
    ]
    assert look("two.gpkg", data, layer="two").acceptable


def test_a_sound_raster(look: Any, tmp_path: Path) -> None:
    inspection = look("dem.tif", geotiff(tmp_path / "a.tif"), datetime="2024-01-01")
    assert inspection.problems == []
    raster = inspection.raster
    assert raster is not None
    assert inspection.data_type == "raster"
    assert (raster.width, raster.height, raster.nodata, raster.pixel_size) == (8, 6, -9999, (10, 10))
    assert [(band.type, band.minimum, band.maximum) for band in raster.bands] == [("int16", 1, 1), ("int16", 2, 2)]
    assert inspection.crs is not None
    assert inspection.crs.code == "EPSG:32633"
    assert inspection.extent is not None
    assert inspection.extent[0] == pytest.approx(15.0)


def test_all_problems_of_a_raster_are_told_at_once(look: Any, tmp_path: Path) -> None:
    data = geotiff(tmp_path / "a.tif")
    inspection = look("dem.tif", data, output_tier="visualization", target_crs="nowhere", datetime="yesterday")
    assert set(codes(inspection)) == {"tier_unfit", "bad_crs", "bad_datetime"}
    assert inspection.extent is not None
    wrong = look("dem.tif", data, output_tier="shiny")
    assert codes(wrong) == ["invalid_option"]
    assert wrong.problems[0].field == "processing_options.output_tier"


def test_a_system_that_does_not_fit_the_place_is_told_before_the_job(look: Any, tmp_path: Path) -> None:
    polar = {"crs": "EPSG:3413", "transform": from_origin(-3_000_000, 3_000_000, 50_000, 50_000)}
    data = geotiff(tmp_path / "a.tif", **polar, width=120, height=120)
    inspection = look("ice.tif", data, target_crs="EPSG:4326", datetime="2024-01-01")
    assert codes(inspection) == ["covers_pole"]
    (remedy,) = inspection.problems[0].remedies
    assert (remedy.option, remedy.value) == ("target_crs", "auto")
    assert look("ice.tif", data, target_crs=remedy.value, datetime="2024-01-01").problems == []
    world = geotiff(tmp_path / "b.tif", crs="EPSG:4326", transform=from_origin(-180, 90, 1, 1), width=360, height=180)
    told = look("world.tif", world, target_crs="EPSG:3857", datetime="2024-01-01")
    assert told.acceptable
    assert ["85.05°" in problem.message or "resampled" in problem.message for problem in told.problems] == [True] * 2


def test_a_raster_in_a_format_that_is_refused_is_a_raster(look: Any, tmp_path: Path) -> None:
    inspection = look("a.img", geotiff(tmp_path / "a.img", driver="HFA"), datetime="2024-01-01")
    assert (inspection.data_type, codes(inspection)) == ("raster", ["unsupported_format"])
    assert "gdal_translate" in inspection.problems[0].message


def test_a_raster_of_control_points_has_the_format_of_its_file(look: Any, tmp_path: Path) -> None:
    points = [GroundControlPoint(0, 0, 10, 50), GroundControlPoint(0, 8, 11, 50), GroundControlPoint(6, 0, 10, 49)]
    path = tmp_path / "a.tif"
    about: dict[str, Any] = {"driver": "GTiff", "width": 8, "height": 6, "count": 1, "dtype": "uint8"}
    with pytest.warns(NotGeoreferencedWarning), rasterio.open(path, "w", **about) as dataset:
        dataset.gcps = (points, "EPSG:4326")
    assert look("a.tif", path.read_bytes()).format == "GTiff"


def test_a_raster_without_a_place_still_shows_its_header(look: Any, tmp_path: Path) -> None:
    inspection = look("a.tif", geotiff(tmp_path / "a.tif", crs=None))
    assert codes(inspection) == ["no_crs"]
    assert inspection.raster is not None
    assert inspection.raster.width == 8
    assert [remedy.option for remedy in inspection.problems[0].remedies] == ["source_crs"]
    wrong = look("a.tif", geotiff(tmp_path / "a.tif", crs=None), source_crs="nowhere")
    assert codes(wrong) == ["bad_source_crs"]
    assert [remedy.option for remedy in wrong.problems[0].remedies] == ["source_crs"]
    solved = look("a.tif", geotiff(tmp_path / "a.tif", crs=None), source_crs="EPSG:32633")
    assert "no_crs" not in [problem.code for problem in solved.problems]


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"PK\x03\x04 but no archive", b"<gml>", b"II*\0" + bytes(200)])
def test_nonsense_is_a_problem_and_no_crash(look: Any, data: bytes) -> None:
    inspection = look("some.bin", data)
    assert not inspection.acceptable
    assert "/" not in "".join(problem.message for problem in inspection.problems).replace("bronze/uploads/", "")


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(look: Any, tmp_path: Path) -> None:
    data = sources.zipped(sources.shapefile(tmp_path, sources.table(SQUARES), kind="Polygon"))
    inspection = look("a.zip", data, copied_bytes=1000)
    assert (inspection.acceptable, inspection.complete) == (True, False)
    assert codes(inspection, Severity.WARNING) == ["not_inspected"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_only_the_beginning_of_a_large_file_is_read(look: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.inspection.vectors.SMALL_BYTES", 1000)
    monkeypatch.setattr("geomill.inspection.vectors.MOST_ROWS", 500)
    points = [shapely.Point(number / 100, 1) for number in range(2_000)]
    inspection = look("many.geojson", sources.geojson(*points))
    assert (inspection.complete, inspection.layers[0].rows) == (False, None)
    assert inspection.layers[0].bounds is not None
    assert inspection.layers[0].bounds[2] < 10  # of the first features
    text = "lon;lat;note\n" + "".join(f'{number % 90},5;2,5;"a\nb"\n' for number in range(3_000))
    rewritten = look("many.csv", text.encode())
    assert (rewritten.complete, rewritten.layers[0].rows) == (False, None)
    table = sources.table(points, number=list(range(2_000)))
    declared = look("many.fgb", sources.encoded(tmp_path, table, "fgb", kind="Point"))
    assert (declared.complete, declared.layers[0].rows) == (False, 2_000)
