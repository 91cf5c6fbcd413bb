"""Generates the demo's raster: an invented island, drawn from a seed as a satellite might see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

COARSE = 8
"""The land is computed at an eighth of the resolution, the grain at the full resolution."""
CRS, EAST, NORTH, PIXEL = "EPSG:32733", 350_000, 8_000_000, 10
"""The location: CRS, upper-left corner and the size of a pixel, in metres."""
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
    land = np.zeros((size, size), np.float32)
    for octave in range(8):
        knots = 3 * 2**octave + 1
        land += _stretched(random.standard_normal((knots, knots)).astype(np.float32), size) * 0.5**octave
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    away = np.hypot(axis[:, None], axis[None, :])
    return np.clip(land * 0.35 + 0.45 - away, -1, 1)


def _stretched(knots: Any, size: int) -> Any:
    """Enlarge a square array with bilinear interpolation."""
    import numpy as np

    places = np.linspace(0, len(knots) - 1.001, size, dtype=np.float32)
    low = places.astype(np.int32)
    share = (places - low)[:, None]
    rows = knots[low] * (1 - share) + knots[low + 1] * share
    return rows[:, low] * (1 - share.T) + rows[:, low + 1] * share.T


def _strip(random: Any, height: Any, row: int, rows: int, pixels: int) -> Any:
    """Return the pixels of some rows: colours by height, light from the north-west, and grain."""
    import numpy as np

    down = np.arange(row, row + rows, dtype=np.float32) / COARSE
    across = np.arange(pixels, dtype=np.float32) / COARSE
    top, left = down.astype(np.int32), across.astype(np.int32)
    share_down, share_across = (down - top)[:, None], (across - left)[None, :]
    upper, lower = height[top], height[top + 1]
    here = (upper[:, left] * (1 - share_across) + upper[:, left + 1] * share_across) * (1 - share_down)
    here += (lower[:, left] * (1 - share_across) + lower[:, left + 1] * share_across) * share_down
    light = 1 + np.clip((upper[:, left] - lower[:, left + 1]) * 18, -0.45, 0.45) * (here > 0)
    light += random.integers(-9, 10, here.shape, np.int8).astype(np.float32) / 180
    stops = [stop for stop, _ in _COLOURS]
    bands = [np.interp(here, stops, [colour[band] for _, colour in _COLOURS]) * light for band in range(3)]
    return np.clip(np.stack(bands), 1, 255).astype(np.uint8)
