"""The grid of tiles: exact, whole, without gaps, whatever the numbers."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from geomill.raster.grid import (
    BATCH_BYTES,
    BATCH_SHARE,
    ENOUGH_TILES,
    LARGEST_TILE,
    TILE_BYTES,
    Grid,
    aligned,
    batches,
    tile_size,
)

sides = st.integers(1, 60_000)
sizes = st.integers(1, 16).map(lambda n: n * 512)
places = st.floats(-2e7, 2e7)
resolutions = st.floats(1e-6, 1e3)


def grid(width: int, height: int, resolution: float = 0.25, x: float = 10.0, y: float = 50.0) -> Grid:
    return Grid(crs="EPSG:4326", transform=(resolution, 0, x, 0, -resolution, y), width=width, height=height)


@given(sides, sides, sizes)
def test_tiles_cover_every_pixel_once(width: int, height: int, size: int) -> None:
    tiles = list(grid(width, height).tiles(size))
    assert sum(tile.width * tile.height for tile in tiles) == width * height
    for tile in tiles:
        assert (tile.column, tile.row) == (tile.x * size, tile.y * size)
        assert 0 < tile.width <= size
        assert 0 < tile.height <= size
        assert tile.column + tile.width <= width
        assert tile.row + tile.height <= height
    assert len({tile.tile_id for tile in tiles}) == len(tiles)


@given(st.integers(600, 9_000), st.integers(600, 9_000), resolutions, places, places)
def test_neighbours_share_their_edge_to_the_last_bit(width: int, height: int, res: float, x: float, y: float) -> None:
    whole = grid(width, height, res, x, y)
    tiles = {(tile.x, tile.y): whole.bounds_of(tile) for tile in whole.tiles(512)}
    for (column, row), (_, bottom, right, _) in tiles.items():
        if (column + 1, row) in tiles:
            assert tiles[column + 1, row][0] == right
        if (column, row + 1) in tiles:
            assert tiles[column, row + 1][3] == bottom


@given(places, places, st.floats(0.001, 1e5), st.floats(0.001, 1e5), st.floats(1e-3, 1e3))
def test_an_aligned_grid_covers_its_bounds_and_lies_on_the_lattice(
    left: float, bottom: float, width: float, height: float, resolution: float
) -> None:
    lattice = aligned("EPSG:3857", (left, bottom, left + width, bottom + height), resolution)
    bounds = lattice.bounds
    slack = resolution * 1e-6 + 1e-6
    assert bounds[0] <= left + slack
    assert bounds[1] <= bottom + slack
    assert bounds[2] >= left + width - slack
    assert bounds[3] >= bottom + height - slack
    assert (bounds[2] - bounds[0]) <= width + 2 * resolution + slack
    for origin in (lattice.transform[2], lattice.transform[5]):
        assert math.isclose(origin / resolution, round(origin / resolution), abs_tol=1e-6)


@given(sides, sides, st.integers(1, 4_000))
def test_a_tile_fits_into_its_bound(width: int, height: int, pixel: int) -> None:
    size = tile_size(grid(width, height), pixel)
    assert size % 512 == 0
    assert 512 <= size <= LARGEST_TILE
    assert size == 512 or size * size * pixel <= TILE_BYTES
    if size > 2048:
        assert math.ceil(width / size) * math.ceil(height / size) >= ENOUGH_TILES


def test_the_size_of_a_tile_for_usual_rasters() -> None:
    large = grid(60_000, 60_000)
    assert tile_size(large, 3) == 8192  # RGB
    assert tile_size(large, 16) == 3072  # eight bands of 16 bits
    assert tile_size(large, 4) == 6144  # heights
    assert tile_size(grid(3_000, 3_000), 3) == 2048


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 64))
def test_batches_hold_every_tile_in_order_and_are_bounded(width: int, height: int, pixel: int) -> None:
    tiles = list(grid(width, height).tiles(2048))
    grouped = batches(tiles, pixel)
    assert [tile for batch in grouped for tile in batch] == tiles
    assert all(grouped)
    sizes = [sum(t.width * t.height * pixel for t in batch) for batch in grouped]
    for number, batch in enumerate(grouped):
        share = sum(sizes[number:]) // BATCH_SHARE
        assert len(batch) == 1 or sizes[number] <= min(BATCH_BYTES, share)
