"""Parameters and places of the stage job for large rasters."""

from __future__ import annotations

from geomill.stages.library.process_large_raster import LargeRasterParameters, OutputPlaces

JOB = "598fc149" + "0" * 56


def places(blob_name: str, **more: str) -> set[str]:
    output = OutputPlaces(LargeRasterParameters.model_validate({"blob_name": blob_name, **more}), JOB)
    return {output.scheme, output.tile}


def test_the_places_of_a_file_without_a_folder() -> None:
    assert places("17apr2024wv2.tif") == {
        "tiling_schemes/17apr2024wv2_scheme.json",
        "cogs/17apr2024wv2/17apr2024wv2_tile_{x}_{y}_cog.tif",
    }


def test_files_of_one_name_in_different_folders_share_no_place() -> None:
    names = ["scene.tif", "a/scene.tif", "b/scene.tif", "a/b/scene.tif", "a.tif", "a/a.tif", "b/.hidden"]
    found = [place for name in names for place in places(name)]
    assert len(found) == len(set(found))
    assert "out/cogs/a/scene/scene_tile_{x}_{y}_cog.tif" in places("a/scene.tif", output_folder="out")


def test_files_of_one_name_in_different_containers_share_no_place() -> None:
    assert places("a/scene.tif").isdisjoint(places("a/scene.tif", container_name="deliveries"))
    assert places("scene.tif", container_name="uploads") == places("scene.tif")


def test_no_container_means_the_default() -> None:
    by_null, absent = (
        LargeRasterParameters.model_validate({"blob_name": "a.tif", **more}) for more in ({"container_name": None}, {})
    )
    assert by_null == absent
    assert absent.container_name == "uploads"
