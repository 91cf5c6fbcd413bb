"""Colours where the caller says nothing: bands, stretch and colormap by the rule of `raster/rendering.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader
from rio_tiler.models import ImageData
from titiler.core.utils import render_image

from geomill.domain.served import Served
from geomill.raster.facts import RasterType
from geomill.raster.rendering import Rendering, rendering

RESCALE = "geomill_rescale"
"""Where an image remembers the stretch that it gets unless another is given."""


class Painter:
    def __init__(self, served: Served) -> None:
        self._served = served

    def paint(
        self, dataset: DatasetReader, read: Callable[..., ImageData], *args: Any, indexes: Any = None, **options: Any
    ) -> tuple[ImageData, Any]:
        """The image, and the colormap that it gets unless another is given."""
        palette = dataset.colorinterp[0] is ColorInterp.palette
        chosen = self._rendering(dataset, indexes, palette=palette)
        image = read(*args, indexes=chosen.bands or indexes, **options)
        if chosen.rescale:
            image.metadata = {**(image.metadata or {}), RESCALE: chosen.rescale}
        return image, dataset.colormap(1) if palette and chosen.bands == (1,) else chosen.colormap

    def _rendering(self, dataset: DatasetReader, indexes: Any, *, palette: bool) -> Rendering:
        served = self._served
        return rendering(
            kind_of(served),
            served.statistics,
            dtype=dataset.dtypes[0],
            colors=[color.name for color in dataset.colorinterp],
            palette=palette,
            wanted=(indexes,) if isinstance(indexes, int) else tuple(indexes or ()),
        )


def kind_of(served: Served) -> RasterType:
    """What was published without being looked at is shown as it is."""
    return RasterType(served.raster_type) if served.raster_type in list(RasterType) else RasterType.SINGLE_BAND


def render(
    image: ImageData, *, rescale: Any = None, color_formula: str | None = None, **options: Any
) -> tuple[bytes, str]:
    """As TiTiler does, with our stretch where none is given."""
    if rescale is None and color_formula is None:
        rescale = (image.metadata or {}).get(RESCALE)
    return render_image(image, rescale=rescale, color_formula=color_formula, **options)
