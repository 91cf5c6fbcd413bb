"""Colours of pictures: those of a style, or geomill's own by the rule of `raster/rendering.py`.

Parameters of the caller win over both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rasterio.io import DatasetReader
from rio_tiler.colormap import cmap
from rio_tiler.models import ImageData
from titiler.core.resources.enums import ImageType
from titiler.core.utils import render_image

from geomill.domain.assets.drawing import colormap, stretch
from geomill.domain.assets.served import Served
from geomill.domain.assets.style import RasterStyle
from geomill.errors import ConflictError
from geomill.raster.pictures import rendering_of
from geomill.raster.rendering import Rendering, band_ranges, kind_of

RESCALE = "geomill_rescale"
"""The metadata key of an image's default stretch."""
OPACITY = "geomill_opacity"
"""The metadata key of the opacity that a style gives to an image."""
_BAND = re.compile(r"\bb([0-9]+)\b")


@dataclass(frozen=True, slots=True)
class ChosenStyle:
    """The style of a picture. `named` says that the caller asked for it; otherwise it is the asset's default."""

    style: RasterStyle
    named: bool


class Painter:
    def __init__(self, served: Served, chosen: ChosenStyle | None = None) -> None:
        self._served, self._chosen = served, chosen

    def paint(
        self, dataset: DatasetReader, read: Callable[..., ImageData], *args: Any, indexes: Any = None, **options: Any
    ) -> tuple[ImageData, Any]:
        """Return the image and its default colormap."""
        requested = (indexes,) if isinstance(indexes, int) else tuple(indexes or ())
        if self._chosen and self._fits(self._chosen, dataset):
            return self._styled(self._chosen.style, dataset, read, *args, requested=requested, **options)
        house = self._house(dataset, requested)
        image = read(*args, indexes=house.bands or indexes, **options)
        return _stretched(image, house.rescale), house.colormap

    def _house(self, dataset: DatasetReader, requested: Sequence[int] = ()) -> Rendering:
        return rendering_of(dataset, kind_of(self._served.raster_type), self._served.statistics, requested)

    def _fits(self, chosen: ChosenStyle, dataset: DatasetReader) -> bool:
        """Whether the raster has the bands of the style. A later revision may have fewer."""
        style = chosen.style
        bands = [*style.bands, *(int(band) for band in _BAND.findall(style.expression or ""))]
        if max(bands, default=1) <= dataset.count:
            return True
        if chosen.named:
            raise ConflictError(
                f"the style needs band {max(bands)}, and the raster has {dataset.count}",
                remedy="use another style, or style=automatic",
            )
        return False

    def _styled(
        self,
        style: RasterStyle,
        dataset: DatasetReader,
        read: Callable[..., ImageData],
        *args: Any,
        requested: Sequence[int],
        expression: str | None = None,
        **options: Any,
    ) -> tuple[ImageData, Any]:
        if style.nodata is not None and options.get("nodata") is None:
            options["nodata"] = style.nodata
        if style.resampling and options.get("resampling_method") is None:
            options["resampling_method"] = style.resampling.value
        if not style.has_colors and not expression:
            return self._by_house(style, dataset, read, *args, requested=requested, **options)
        expression = expression or (style.expression if not requested else None)
        bands = () if expression else tuple(requested) or style.bands or self._house(dataset).bands
        chosen = {"expression": expression} if expression else {"indexes": bands}
        image = read(*args, **chosen, **options)
        colors = cmap.get(style.colormap_name) if style.colormap_name else colormap(style)
        return _stretched(_marked(image, style), stretch(style) or self._by_data(style, dataset, bands)), colors

    def _by_house(
        self,
        style: RasterStyle,
        dataset: DatasetReader,
        read: Callable[..., ImageData],
        *args: Any,
        requested: Sequence[int],
        **options: Any,
    ) -> tuple[ImageData, Any]:
        house = self._house(dataset, requested)
        image = read(*args, indexes=house.bands or tuple(requested) or None, **options)
        return _stretched(_marked(image, style), house.rescale), house.colormap

    def _by_data(self, style: RasterStyle, dataset: DatasetReader, bands: Sequence[int]) -> Any:
        """Return the stretch of a style that has none. Colours of values need none."""
        if style.colormap or style.classes or not bands:
            return ()
        return band_ranges(self._served.statistics, bands, dataset.dtypes[0])


def _stretched(image: ImageData, rescale: Any) -> ImageData:
    if rescale:
        image.metadata = {**(image.metadata or {}), RESCALE: rescale}
    return image


def _marked(image: ImageData, style: RasterStyle) -> ImageData:
    if style.opacity < 1:
        image.metadata = {**(image.metadata or {}), OPACITY: style.opacity}
    return image


def render(
    image: ImageData, *, rescale: Any = None, color_formula: str | None = None, **options: Any
) -> tuple[bytes, str]:
    """Render as TiTiler does, with the default stretch if the caller gives none, and with the opacity of the style."""
    metadata = image.metadata or {}
    if rescale is None and color_formula is None:
        rescale = metadata.get(RESCALE)
    opacity, output_format = metadata.get(OPACITY, 1.0), options.get("output_format")
    if opacity == 1.0 or output_format not in (None, ImageType.png, ImageType.webp):
        return render_image(image, rescale=rescale, color_formula=color_formula, **options)
    if rescale:
        image.rescale(rescale)
    if options.get("colormap"):
        options["colormap"] = _faded(options["colormap"], opacity)
    else:
        image.alpha_mask = np.rint(image.mask * opacity).astype(image.mask.dtype)
    options["output_format"] = output_format or ImageType.png  # TiTiler would choose JPEG, which has no opacity
    return render_image(image, color_formula=color_formula, **options)


def _faded(colors: Any, opacity: float) -> Any:
    """Return a colormap of rio-tiler, by values or by ranges, with less opacity."""
    if isinstance(colors, dict):
        return {value: (*color[:3], round(color[3] * opacity)) for value, color in colors.items()}
    return [(limits, (*color[:3], round(color[3] * opacity))) for limits, color in colors]
