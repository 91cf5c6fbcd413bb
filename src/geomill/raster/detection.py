"""Detects the type of a raster from its header and a sample of its pixels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geomill.raster.facts import RasterFacts, RasterType, Validity

MOST_CLASSES = 40
HEIGHTS = (-12_000.0, 9_000.0)
"""The range of elevations on Earth, including the sea floor, in metres."""
_HEIGHT = re.compile(r"\b(dem|dsm|dtm|elevation|height|altitude)\b", re.IGNORECASE)


def detect(facts: RasterFacts, distinct: int, hints: Sequence[str] = ()) -> RasterType:
    """Return the type of a raster. `distinct` is the number of different values in the sample of the first band;
    `hints` are names and titles."""
    colors = facts.count - (facts.validity is Validity.ALPHA)
    if colors == 1:
        return _single(facts, distinct, hints)
    if colors == 3 and facts.dtype in ("uint8", "uint16"):
        return RasterType.RGBA if facts.validity is Validity.ALPHA else RasterType.RGB
    if colors == 4:
        return RasterType.NIR
    return RasterType.MULTISPECTRAL


def _single(facts: RasterFacts, distinct: int, hints: Sequence[str]) -> RasterType:
    if facts.palette or facts.bits == 1:
        return RasterType.CATEGORICAL
    whole = not facts.dtype.startswith("float")
    if any(map(_HEIGHT.search, hints)):
        return RasterType.DEM
    if whole and 0 < distinct <= MOST_CLASSES:
        return RasterType.CATEGORICAL
    if facts.dtype in ("uint8", "uint16"):
        return RasterType.SINGLE_BAND
    return _measured(facts)


def _measured(facts: RasterFacts) -> RasterType:
    band = facts.bands[0]
    if band.minimum is None or band.maximum is None:
        return RasterType.CONTINUOUS
    if facts.dtype.startswith("float") and band.minimum >= -1.0 and band.maximum <= 1.0:
        return RasterType.INDEX
    spread = band.maximum - band.minimum
    if HEIGHTS[0] <= band.minimum and band.maximum <= HEIGHTS[1] and spread > 1 and band.units in (None, "m", "metre"):
        return RasterType.DEM
    return RasterType.CONTINUOUS
