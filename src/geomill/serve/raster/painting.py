"""Colours where the caller says nothing: bands, stretch and colormap by the rule of `raster/rendering.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rasterio.io import DatasetReader
from rio_tiler.models import ImageData
from titiler.core.utils import render_image

from geomill.domain.assets.served import Served
from geomill.raster.pictures import rendering_of
from geomill.raster.rendering import kind_of

RESCALE = "geomill_rescale"
"""Where an image remembers the stretch that it gets unless another is given."""


class Painter:
    def __init__(self, served: Served) -> None:
        self._served = served

    def paint(
        self, dataset: DatasetReader, read: Callable[..., ImageData], *args: Any, indexes: Any = None, **options: Any
    ) -> tuple[ImageData, Any]:
        """The image, and the colormap that it gets unless another is given."""
        requested = (indexes,) if isinstance(indexes, int) else tuple(indexes or ())
        chosen = rendering_of(dataset, kind_of(self._served.raster_type), self._served.statistics, requested)
        image = read(*args, indexes=chosen.bands or indexes, **options)
        if chosen.rescale:
            image.metadata = {**(image.metadata or {}), RESCALE: chosen.rescale}
        return image, chosen.colormap


def render(
    image: ImageData, *, rescale: Any = None, color_formula: str | None = None, **options: Any
) -> tuple[bytes, str]:
    """As TiTiler does, with our stretch where none is given."""
    if rescale is None and color_formula is None:
        rescale = (image.metadata or {}).get(RESCALE)
    return render_image(image, rescale=rescale, color_formula=color_formula, **options)
