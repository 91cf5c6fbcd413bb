"""Statistics of pieces, put together, are those of the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from geomill.raster.facts import Validity
from geomill.raster.statistics import BINS, as_tags, measure, merged_bands
from geomill.raster.warping import Pixels

heights = st.floats(-500, 9_000, width=32)


@given(arrays.arrays(np.float32, (2, 12, 20), elements=heights | st.just(np.float32(-9999))), st.integers(1, 19))
def test_two_pieces_make_the_whole(data: np.ndarray, cut: int) -> None:
    ranges = [(-500.0, 9_000.0)] * 2
    left, right = (Pixels(part, Validity.NODATA, nodata=-9999) for part in (data[:, :, :cut], data[:, :, cut:]))
    merged = merged_bands([measure(left, ranges), measure(right, ranges)])
    for index, band in enumerate(merged):
        values = data[index][data[index] != -9999].astype(float)
        assert band.count == values.size
        assert band.total == data[index].size
        assert sum(band.histogram) == values.size
        if values.size:
            assert (band.minimum, band.maximum) == (values.min(), values.max())
            assert band.mean == pytest.approx(values.mean(), abs=1e-6)
            assert band.deviation == pytest.approx(values.std(), abs=1e-3)
        else:
            assert as_tags(band) == {}


def test_what_is_outside_the_range_is_in_the_outermost_bins() -> None:
    data = np.array([[[-1000.0, 0.0, 50.0, 1e6, math.nan, math.inf]]], np.float32)
    band = measure(Pixels(data, Validity.NODATA, nodata=math.nan), [(0.0, 100.0)])[0]
    assert len(band.histogram) == BINS
    assert (band.histogram[0], band.histogram[-1]) == (2, 1)
    assert band.maximum == 1e6


def test_a_large_piece_is_thinned_and_says_so() -> None:
    data = np.random.default_rng(1).integers(0, 256, (1, 2050, 1030), dtype="uint8")
    band = measure(Pixels(data, Validity.ALL), [(0.0, 256.0)])[0]
    assert band.approximate
    assert band.valid_percent == pytest.approx(100)
    assert sum(band.histogram) == pytest.approx(data.size)
    assert band.mean == pytest.approx(data.mean(), rel=0.01)
    assert as_tags(band)["STATISTICS_APPROXIMATE"] == "YES"


def test_alpha_and_mask_say_what_counts() -> None:
    data = np.array([[[10, 20]], [[255, 0]]], np.uint8)
    assert measure(Pixels(data, Validity.ALPHA, alpha=2), [(0, 256)] * 2)[0].maximum == 10
    mask = np.array([[0, 255]], np.uint8)
    assert measure(Pixels(data[:1], Validity.MASK, mask), [(0, 256)])[0].minimum == 20
