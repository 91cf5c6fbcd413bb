"""The style that lies beside a raster."""

from __future__ import annotations

from functools import partial

from geomill.datasets.source_styles import SourceStyles, chosen_style, styles_beside
from geomill.domain.assets.foreign_xml import NotConvertible
from geomill.domain.assets.style import RasterStyle, VectorStyle
from geomill.raster.facts import RasterFacts
from geomill.sdk import ObjectName, Storage


def read_styles(storage: Storage, name: ObjectName, facts: RasterFacts) -> tuple[SourceStyles, list[str]]:
    """Return the style that lies beside the raster, and warnings."""
    return chosen_style(styles_beside(storage, name), partial(fit, facts))


def fit(facts: RasterFacts, style: RasterStyle | VectorStyle) -> tuple[RasterStyle, list[str]]:
    """Return the style if the raster can be drawn with it. Raises `NotConvertible`."""
    if not isinstance(style, RasterStyle):
        raise NotConvertible("it is the style of a vector layer")
    if not style.bands and not style.rescale:
        raise NotConvertible("it has neither bands nor colours")
    if beyond := [band for band in style.bands if band > facts.count]:
        raise NotConvertible(f"it needs band {max(beyond)}, and the raster has {facts.count}")
    scaled = [facts.bands[band - 1] for band in style.bands if band <= len(facts.bands)]
    if any((band.scale, band.offset) != (1.0, 0.0) for band in scaled):
        # QGIS styles the scaled values, and tiles are drawn from the stored ones.
        raise NotConvertible("the raster stores scaled values, and the style is about the values without scale")
    return style, []
