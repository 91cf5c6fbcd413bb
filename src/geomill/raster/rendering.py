"""Default colours of a raster: one rule for images, tiles and STAC items.

Pure and without dependencies, because it is also used where no pixels are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from geomill.raster.facts import RasterType

Color = tuple[int, int, int]
RAMPS: Mapping[RasterType, Sequence[Color]] = {
    RasterType.DEM: ((38, 84, 62), (132, 166, 98), (226, 206, 150), (150, 104, 72), (250, 250, 250)),
    RasterType.INDEX: ((140, 81, 10), (216, 179, 101), (245, 245, 220), (127, 191, 123), (27, 120, 55)),
    RasterType.CONTINUOUS: ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)),
}
"""Colours from low to high values."""
OUTERMOST = 0.02
"""The fraction of lowest and of highest values that a stretch leaves out."""
MOST_CLASSES = 256


class Rendering(BaseModel):
    """How to draw a raster. `bands` count from 1. A raster with its own palette needs neither stretch nor colormap."""

    model_config = ConfigDict(frozen=True)

    bands: tuple[int, ...] = ()
    rescale: tuple[tuple[float, float], ...] = ()
    colormap: dict[int, tuple[int, int, int, int]] | None = None
    legend: tuple[tuple[float, Color], ...] = ()
    """Values and colours of the legend."""


def rendering(
    kind: RasterType,
    statistics: Sequence[Mapping[str, Any]],
    *,
    dtype: str,
    colors: Sequence[str] = (),
    palette: bool = False,
    chosen: Sequence[int] = (),
) -> Rendering:
    """Return the rendering of a raster. `statistics` are those of an asset's bands, `colors` the file's own names of
    its bands, and `chosen` the requested bands, counted from 1."""
    house = _house(kind, statistics, dtype, colors, palette=palette)
    if not chosen or tuple(chosen) == house.bands:
        return house
    return Rendering(bands=tuple(chosen), rescale=band_ranges(statistics, chosen, dtype))


def band_ranges(
    statistics: Sequence[Mapping[str, Any]], bands: Sequence[int], dtype: str
) -> tuple[tuple[float, float], ...]:
    """Return the stretch of each band, counted from 1. Bytes are drawn as they are."""
    return () if dtype == "uint8" else tuple(_range(statistics, band - 1) for band in bands)


def _house(
    kind: RasterType, statistics: Sequence[Mapping[str, Any]], dtype: str, colors: Sequence[str], *, palette: bool
) -> Rendering:
    if palette:
        return Rendering(bands=(1,))
    if kind is RasterType.CATEGORICAL:
        return _classes(statistics)
    if kind in RAMPS:
        low, high = _range(statistics, 0)
        legend = tuple((low + (high - low) * place / 4, color) for place, color in enumerate(RAMPS[kind]))
        return Rendering(bands=(1,), rescale=((low, high),), colormap=ramp(RAMPS[kind]), legend=legend)
    count = len(colors) or len(statistics) or 1
    bands = red_green_blue(count, colors)
    if dtype == "uint8" and len(bands) == 3 and count in (3, 4):
        return Rendering(bands=bands)
    return Rendering(bands=bands, rescale=tuple(_range(statistics, band - 1) for band in bands))


def kind_of(name: str | None) -> RasterType:
    """Return the raster type. A raster of unknown type, which was published unprocessed, is shown with its own
    bands."""
    return RasterType(name) if name in list(RasterType) else RasterType.SINGLE_BAND


def stretches(kind: RasterType, statistics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the part of the statistics that `rendering` needs, without histograms, to cache those of many rasters."""
    find = _extremes if kind is RasterType.CATEGORICAL else _range
    ranges = [find(statistics, index) for index in range(len(statistics))]
    return [{"minimum": low, "maximum": high} for low, high in ranges]


def red_green_blue(count: int, colors: Sequence[str] = ()) -> tuple[int, ...]:
    """Return the bands of an image in natural colours, or the first band alone."""
    if all(color in colors for color in ("red", "green", "blue")):
        return tuple(list(colors).index(color) + 1 for color in ("red", "green", "blue"))
    count -= "alpha" in colors
    if count < 3:
        return (1,)
    return (1, 2, 3) if count < 5 else (3, 2, 1)


def ramp(colors: Sequence[Color]) -> dict[int, tuple[int, int, int, int]]:
    """Return a colormap of 256 steps between the colours."""
    steps = {}
    for step in range(256):
        place = step / 255 * (len(colors) - 1)
        index = min(int(place), len(colors) - 2)
        share = place - index
        mixed = [round(a + (b - a) * share) for a, b in zip(colors[index], colors[index + 1], strict=True)]
        steps[step] = (mixed[0], mixed[1], mixed[2], 255)
    return steps


def class_color(value: int) -> Color:
    """Return the colour of a class, which is the same in all images."""
    hashed = (value + 1) * 2_654_435_761
    red, green, blue = ((hashed >> shift) % 200 + 40 for shift in (4, 11, 19))
    return red, green, blue


def _classes(statistics: Sequence[Mapping[str, Any]]) -> Rendering:
    """Return the rendering of classes. More classes than a map can show become shades of grey."""
    low, high = _extremes(statistics, 0)
    first, last = int(low), int(high)
    if last - first >= MOST_CLASSES:
        return Rendering(bands=(1,), rescale=((low, high),))
    return Rendering(bands=(1,), colormap={value: (*class_color(value), 255) for value in range(first, last + 1)})


def _extremes(statistics: Sequence[Mapping[str, Any]], index: int) -> tuple[float, float]:
    band = statistics[index] if index < len(statistics) else {}
    low, high = band.get("minimum"), band.get("maximum")
    if low is None or high is None:
        return 0.0, 255.0
    return float(low), float(high)


def _range(statistics: Sequence[Mapping[str, Any]], index: int) -> tuple[float, float]:
    """Return the stretch of a band, without the outermost values if there is a histogram."""
    low, high = _extremes(statistics, index)
    histogram = statistics[index].get("histogram") if index < len(statistics) else None
    if histogram and sum(histogram["buckets"]):
        low, high = _percentiles(histogram, low, high)
    return (low, high) if high > low else (low, low + 1)


def _percentiles(histogram: Mapping[str, Any], lowest: float, highest: float) -> tuple[float, float]:
    buckets: Sequence[float] = histogram["buckets"]
    width = (histogram["max"] - histogram["min"]) / len(buckets)
    total, counted = sum(buckets), 0.0
    low, high = None, None
    for index, count in enumerate(buckets):
        before, counted = counted, counted + count
        if low is None and counted > total * OUTERMOST:
            low = histogram["min"] + width * (index + _share(total * OUTERMOST - before, count))
        if high is None and counted >= total * (1 - OUTERMOST):
            high = histogram["min"] + width * (index + _share(total * (1 - OUTERMOST) - before, count))
    return max(low if low is not None else lowest, lowest), min(high if high is not None else highest, highest)


def _share(rank: float, count: float) -> float:
    return rank / count if count else 0.0
