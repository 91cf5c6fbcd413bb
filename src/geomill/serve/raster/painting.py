"""Default bands, stretch and colormap by the rule of `raster/rendering.py`, unless the caller names others."""

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
"""The metadata key of an image's default stretch."""


class Painter:
    def __init__(self, served: Served) -> None:
        self._served = served

    def paint(
        self, dataset: DatasetReader, read: Callable[..., ImageData], *args: Any, indexes: Any = None, **options: Any
    ) -> tuple[ImageData, Any]:
        """Return the image and its default colormap."""
        requested = (indexes,) if isinstance(indexes, int) else tuple(indexes or ())
        chosen = rendering_of(dataset, kind_of(self._served.raster_type), self._served.statistics, requested)
        image = read(*args, indexes=chosen.bands or indexes, **options)
        if chosen.rescale:
            image.metadata = {**(image.metadata or {}), RESCALE: chosen.rescale}
        return image, chosen.colormap


def render(
    image: ImageData, *, rescale: Any = None, color_formula: str | None = None, **options: Any
) -> tuple[bytes, str]:
    """Render as TiTiler does, with the default stretch if the caller gives none."""
    if rescale is None and color_formula is None:
        rescale = (image.metadata or {}).get(RESCALE)
    return render_image(image, rescale=rescale, color_formula=color_formula, **options)
