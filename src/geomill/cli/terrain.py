"""Generates the demo's raster: an invented island, drawn from a seed as a satellite might see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

COARSE = 8
"""The land is computed at an eighth of the resolution, the grain at the full resolution."""
CRS, EAST, NORTH, PIXEL = "EPSG:32733", 350_000, 8_000_000, 10
"""The location: CRS, upper-left corner and the size of a pixel, in metres."""
LATTICE = 256
"""The side of the table of gradients of an octave. Beyond it they repeat."""
ROTATION = 0.61
"""The angle between the lattices of two octaves, in radians."""
ROWS_AT_ONCE = 256
_COLOURS = (
    (-1.0, (8, 28, 66)),
    (-0.25, (16, 66, 120)),
    (-0.02, (64, 148, 170)),
    (0.0, (222, 206, 158)),
    (0.06, (110, 146, 72)),
    (0.3, (58, 104, 54)),
    (0.55, (118, 106, 84)),
    (0.8, (236, 236, 240)),
)


def make_raster(path: Path, pixels: int, seed: int, progress: Callable[[int, int], None]) -> None:
    """Write three 8-bit bands of `pixels` by `pixels`, 10 m each, in a UTM zone; tiled and without overviews."""
    import numpy as np
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    random, height = np.random.default_rng(seed), land_of(seed, pixels)
    profile: dict[str, Any] = {
        "driver": "GTiff", "width": pixels, "height": pixels, "count": 3, "dtype": "uint8", "tiled": True,
        "blockxsize": 512, "blockysize": 512, "compress": "lzw", "crs": CRS, "photometric": "rgb",
        "transform": from_origin(EAST, NORTH, PIXEL, PIXEL), "BIGTIFF": "IF_SAFER",
    }  # fmt: skip
    part = path.with_suffix(".part")
    with rasterio.open(part, "w", **profile) as target:
        target.update_tags(ACQUISITIONDATETIME="2026-06-21T10:30:00Z")
        for row in range(0, pixels, 512):
            rows = min(512, pixels - row)
            target.write(_strip(random, height, row, rows, pixels), window=Window(0, row, pixels, rows))
            progress(row + rows, pixels)
    part.replace(path)


def land_of(seed: int, pixels: int) -> Any:
    """Return the island's heights between -1 and 1: noise of many scales, high in the middle and below the sea at the
    edges."""
    import numpy as np

    random, size = np.random.default_rng(seed), pixels // COARSE + 2
    octaves = [Octave(random, cells=3 * 2**octave, turn=ROTATION * octave) for octave in range(8)]
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    land = np.empty((size, size), np.float32)
    for top in range(0, size, ROWS_AT_ONCE):
        down, across = axis[top : top + ROWS_AT_ONCE, None], axis[None, :]
        noise = sum(octave.at(across, down) * 0.5**number for number, octave in enumerate(octaves))
        away = np.hypot(across, down)
        away += 2 * np.maximum(away - 0.6, 0) ** 2
        land[top : top + ROWS_AT_ONCE] = np.clip(noise * 0.9 + 0.45 - away, -1, 1)
    return land


class Octave:
    """Gradient noise of one scale. Its lattice is turned, so that the lattices of several scales never lie in line and
    show no edges; and it is interpolated by a curve whose slope and curvature are continuous."""

    def __init__(self, random: Any, cells: int, turn: float) -> None:
        import numpy as np

        angles = random.uniform(0, 2 * np.pi, (LATTICE, LATTICE)).astype(np.float32)
        self._gradients = (np.cos(angles), np.sin(angles))
        self._cells = cells / 2
        self._turn = (np.float32(np.cos(turn)), np.float32(np.sin(turn)))
        self._shift = random.uniform(0, LATTICE, 2).astype(np.float32)

    def at(self, across: Any, down: Any) -> Any:
        """Return the noise, about -0.7 to 0.7, at places given between -1 and 1."""
        import numpy as np

        cosine, sine = self._turn
        x = (across * cosine - down * sine) * self._cells + self._shift[0]
        y = (across * sine + down * cosine) * self._cells + self._shift[1]
        left, top = np.floor(x).astype(np.int32), np.floor(y).astype(np.int32)
        x, y = x - left, y - top
        corners = [[self._slope(left + i, top + j, x - i, y - j) for i in (0, 1)] for j in (0, 1)]
        share_x, share_y = _smooth(x), _smooth(y)
        upper, lower = (before + (after - before) * share_x for before, after in corners)
        return upper + (lower - upper) * share_y

    def _slope(self, column: Any, row: Any, x: Any, y: Any) -> Any:
        place = (row % LATTICE, column % LATTICE)
        return self._gradients[0][place] * x + self._gradients[1][place] * y


def _smooth(share: Any) -> Any:
    return share * share * share * (share * (share * 6 - 15) + 10)


def _strip(random: Any, height: Any, row: int, rows: int, pixels: int) -> Any:
    """Return the pixels of some rows: colours by height, light from the north-west, and grain."""
    import numpy as np

    down = np.arange(row, row + rows, dtype=np.float32) / COARSE
    across = np.arange(pixels, dtype=np.float32) / COARSE
    top = max(int(down[0]) - 1, 0)  # a row more on each side, so that slopes are the same in the next strip
    nearby = height[top : int(down[-1]) + 3]
    here = _between(nearby, down - top, across)
    light = 1 + np.clip(_between(_slopes(nearby), down - top, across) * 18, -0.45, 0.45) * (here > 0)
    light += random.integers(-9, 10, here.shape, np.int8).astype(np.float32) / 180
    stops = [stop for stop, _ in _COLOURS]
    bands = [np.interp(here, stops, [colour[band] for _, colour in _COLOURS]) * light for band in range(3)]
    return np.clip(np.stack(bands), 1, 255).astype(np.uint8)


def _slopes(height: Any) -> Any:
    """Return how much the land falls to the south-east at each place."""
    import numpy as np

    return -(np.gradient(height, axis=0) + np.gradient(height, axis=1))


def _between(grid: Any, down: Any, across: Any) -> Any:
    """Return the values of a grid at places between its points."""
    import numpy as np

    top, left = down.astype(np.int32), across.astype(np.int32)
    share_down, share_across = (down - top)[:, None], (across - left)[None, :]
    rows = grid[top] * (1 - share_down) + grid[top + 1] * share_down
    return rows[:, left] * (1 - share_across) + rows[:, left + 1] * share_across
