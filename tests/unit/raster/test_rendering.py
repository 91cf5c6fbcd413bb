"""The one rule of colours; that pictures and tiles follow the same is tested here, pixels elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.raster import preview
from geomill.raster.facts import RasterType
from geomill.raster.rendering import RAMPS, class_color, ramp, red_green_blue, rendering


def statistics(values: Any, bins: int = 256) -> dict[str, Any]:
    counts, _ = np.histogram(values, bins=bins)
    histogram = {"count": bins, "min": float(values.min()), "max": float(values.max()), "buckets": counts.tolist()}
    return {"minimum": float(values.min()), "maximum": float(values.max()), "histogram": histogram}


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_stretch_leaves_out_the_outermost_hundredths(seed: int) -> None:
    values = np.random.default_rng(seed).normal(100, 20, 5000)
    ((low, high),) = rendering(RasterType.DEM, [statistics(values)], dtype="float32").rescale
    assert (low, high) == pytest.approx(tuple(np.percentile(values, (2, 98))), abs=1.5)


def test_heights_have_a_ramp_and_a_legend() -> None:
    picture = rendering(RasterType.DEM, [statistics(np.linspace(0, 1000, 5000))], dtype="float32")
    assert picture.bands == (1,)
    assert picture.colormap is not None
    assert [color for _, color in picture.legend] == list(RAMPS[RasterType.DEM])
    assert picture.colormap[0][:3] == RAMPS[RasterType.DEM][0]
    assert picture.colormap[255][:3] == RAMPS[RasterType.DEM][-1]
    assert picture.legend[0][0] == pytest.approx(20, abs=5)


def test_pictures_of_bytes_are_left_as_they_are() -> None:
    picture = rendering(RasterType.RGB, [{}, {}, {}], dtype="uint8", colors=["red", "green", "blue", "alpha"])
    assert (picture.bands, picture.rescale, picture.colormap) == ((1, 2, 3), (), None)


def test_chosen_bands_are_stretched_each_by_its_own_values() -> None:
    bands = [{"minimum": 0, "maximum": 10 * n} for n in range(1, 6)]
    picture = rendering(RasterType.MULTISPECTRAL, bands, dtype="uint16", chosen=(5, 4))
    assert (picture.bands, picture.rescale) == ((5, 4), ((0, 50), (0, 40)))
    assert rendering(RasterType.MULTISPECTRAL, bands, dtype="uint16").bands == (3, 2, 1)


def test_one_value_everywhere_is_no_division_by_zero() -> None:
    ((low, high),) = rendering(RasterType.DEM, [{"minimum": 7, "maximum": 7}], dtype="float32").rescale
    assert high > low


@pytest.mark.parametrize("values", [[], [{"minimum": None, "maximum": None}]])
@pytest.mark.parametrize("kind", RasterType)
def test_without_statistics_it_still_is_a_picture(kind: RasterType, values: list[Any]) -> None:
    picture = rendering(kind, values, dtype="float32")
    assert picture.bands
    assert all(high > low for low, high in picture.rescale)


def test_classes_have_the_colours_of_the_preview() -> None:
    values = np.arange(0, 60, dtype="uint8").reshape(1, 6, 10)
    drawn = preview._distinct_colors(values[0])
    for value in range(60):
        assert tuple(drawn[:, value // 10, value % 10]) == class_color(value)
    picture = rendering(RasterType.CATEGORICAL, [{"minimum": 3, "maximum": 9}], dtype="uint8")
    assert picture.colormap == {value: (*class_color(value), 255) for value in range(3, 10)}
    assert rendering(RasterType.CATEGORICAL, [{"minimum": 0, "maximum": 90_000}], dtype="uint32").colormap is None


def test_a_ramp_is_that_of_the_preview() -> None:
    colors = RAMPS[RasterType.INDEX]
    drawn = preview._ramp(np.linspace(0, 1, 256), colors)
    ramp_colors = np.array([ramp(colors)[step][:3] for step in range(256)]).T
    assert np.abs(drawn.astype(int) - ramp_colors).max() <= 1


@pytest.mark.parametrize(
    ("count", "colors", "bands"),
    [
        (1, [], (1,)),
        (2, ["gray", "alpha"], (1,)),
        (3, [], (1, 2, 3)),
        (4, ["blue", "green", "red", "undefined"], (3, 2, 1)),
        (6, [], (3, 2, 1)),
    ],
)
def test_natural_colours(count: int, colors: list[str], bands: tuple[int, ...]) -> None:
    assert red_green_blue(count, colors) == bands
