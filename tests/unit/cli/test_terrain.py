"""The demo's island has no straight edges: neither of the lattices of its noise nor of the strips it is written in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray

from geomill.cli.terrain import COARSE, land_of, make_raster


@pytest.mark.parametrize("seed", [1, 7])
def test_no_row_or_column_stands_out(seed: int) -> None:
    land: NDArray[np.float32] = land_of(seed, 1600)
    inner = land[20:-20, 20:-20]
    for axis in (0, 1):
        bends = np.abs(np.diff(inner, 2, axis=axis)).mean(axis=1 - axis)
        assert bends.max() < 2.5 * np.median(bends)


def test_the_island_lies_in_the_sea() -> None:
    land: NDArray[np.float32] = land_of(7, 1600)
    edges = np.concatenate([land[0], land[-1], land[:, 0], land[:, -1]])
    assert (edges < 0).all()
    assert 0.05 < (land > 0).mean() < 0.5
    assert land.shape == (1600 // COARSE + 2,) * 2


def test_strips_join_without_a_seam(tmp_path: Path) -> None:
    make_raster(tmp_path / "a.tif", 1100, 7, lambda _done, _total: None)
    with rasterio.open(tmp_path / "a.tif") as source:
        picture = source.read(2).astype(np.float32)
    steps = np.abs(np.diff(picture, axis=0))[:, 300:800].mean(axis=1)
    for seam in (511, 1023):
        nearby = np.concatenate([steps[seam - 30 : seam], steps[seam + 1 : seam + 30]])
        assert steps[seam] < nearby.mean() + 4 * nearby.std()
