"""Computes statistics of bands piece by piece and merges them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from geomill.raster.facts import RasterFacts, Validity
from geomill.raster.warping import Pixels

LARGEST_EXACT = 1024 * 1024
"""The number of pixels up to which all are read. Larger pieces read every `STEP`th row and column, as an overview
does."""
STEP = 4
BINS = 128


class BandStatistics(BaseModel):
    """Statistics of a band. `count` is a weight: in a sample each pixel counts for several."""

    count: float = 0.0
    total: float = 0.0
    """The number of all pixels, valid and invalid."""
    minimum: float | None = None
    maximum: float | None = None
    mean: float = 0.0
    deviations: float = 0.0
    """The sum of squared differences from the mean."""
    low: float = 0.0
    high: float = 255.0
    histogram: list[float] = []
    """Counts of equal bins from `low` to `high`. The first and last bins include values outside."""
    approximate: bool = False

    @property
    def deviation(self) -> float:
        return math.sqrt(self.deviations / self.count) if self.count else 0.0

    @property
    def valid_percent(self) -> float:
        return 100.0 * self.count / self.total if self.total else 0.0


def histogram_ranges(facts: RasterFacts) -> list[tuple[float, float]]:
    """Return the range of the histogram of each band, which is the same for all pieces so that histograms can be
    added."""
    if facts.dtype == "uint8":
        return [(0.0, 256.0)] * facts.count
    ranges = []
    for band in facts.bands:
        low, high = band.minimum or 0.0, band.maximum or 0.0
        margin = (high - low) * 0.05 or 1.0
        ranges.append((low - margin, high + margin))
    return ranges


def measure(pixels: Pixels, ranges: Sequence[tuple[float, float]], step: int = STEP) -> list[BandStatistics]:
    bands, height, width = pixels.data.shape
    thin = _thinned(pixels, 1 if height * width <= LARGEST_EXACT else step)
    colors = [index for index in range(bands) if index + 1 != pixels.alpha]
    return [_band(thin, index, ranges[index], height * width) for index in colors]


def _thinned(pixels: Pixels, step: int) -> Pixels:
    mask = None if pixels.mask is None else pixels.mask[::step, ::step]
    return Pixels(pixels.data[:, ::step, ::step], pixels.validity, mask, pixels.nodata, pixels.alpha)


def _band(pixels: Pixels, index: int, span: tuple[float, float], total: int) -> BandStatistics:
    """Return the statistics of a band. `total` is the number of pixels in the piece of which these are a sample."""
    values: NDArray[Any] = pixels.data[index]
    each = total / values.size
    if pixels.validity is not Validity.ALL or pixels.mask is not None:
        values = values[pixels.valid_in(index)]
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    low, high = span
    bins = 256 if values.dtype == np.uint8 else BINS
    if not values.size:
        return BandStatistics(total=total, low=low, high=high, histogram=[0.0] * bins, approximate=each > 1)
    counts = _counts(values, low, high, bins)
    mean = float(values.mean(dtype=np.float64))
    return BandStatistics(
        count=values.size * each,
        total=total,
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=mean,
        deviations=float(values.var(dtype=np.float64)) * values.size * each,
        low=low,
        high=high,
        histogram=[float(count) * each for count in counts],
        approximate=each > 1,
    )


def _counts(values: NDArray[Any], low: float, high: float, bins: int) -> NDArray[np.int64]:
    if values.dtype == np.uint8:
        return np.bincount(values.ravel(), minlength=256)
    return np.histogram(np.clip(values.astype(np.float64), low, high), bins=bins, range=(low, high))[0]


def merged(parts: Sequence[BandStatistics]) -> BandStatistics:
    """Merge statistics with their weights. The order does not matter."""
    whole = parts[0]
    for part in parts[1:]:
        whole = _pair(whole, part)
    return whole


def merged_bands(parts: Sequence[Sequence[BandStatistics]]) -> list[BandStatistics]:
    return [merged(bands) for bands in zip(*parts, strict=True)]


def _pair(a: BandStatistics, b: BandStatistics) -> BandStatistics:
    count = a.count + b.count
    difference = b.mean - a.mean
    return BandStatistics(
        count=count,
        total=a.total + b.total,
        minimum=min((x for x in (a.minimum, b.minimum) if x is not None), default=None),
        maximum=max((x for x in (a.maximum, b.maximum) if x is not None), default=None),
        mean=a.mean + difference * b.count / count if count else 0.0,
        deviations=a.deviations + b.deviations + (difference**2 * a.count * b.count / count if count else 0.0),
        low=a.low,
        high=a.high,
        histogram=[x + y for x, y in zip(a.histogram, b.histogram, strict=True)],
        approximate=a.approximate or b.approximate,
    )


def as_tags(band: BandStatistics) -> dict[str, str]:
    """Return the statistics as GDAL tags, for the file itself."""
    if band.minimum is None or band.maximum is None:
        return {}
    tags = {
        "STATISTICS_MINIMUM": f"{band.minimum:.17g}",
        "STATISTICS_MAXIMUM": f"{band.maximum:.17g}",
        "STATISTICS_MEAN": f"{band.mean:.17g}",
        "STATISTICS_STDDEV": f"{band.deviation:.17g}",
        "STATISTICS_VALID_PERCENT": f"{band.valid_percent:.4g}",
    }
    return {**tags, "STATISTICS_APPROXIMATE": "YES"} if band.approximate else tags
