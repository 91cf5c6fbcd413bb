"""A series of rasters as one image.

Zoomed out, it shows the overview made of all scenes. Zoomed in, it shows the scenes themselves, stacked in the same
order. Scenes may differ in bands, so the series as a whole offers only images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from affine import Affine
from morecantile import Tile, TileMatrixSet
from rasterio.crs import CRS
from rasterio.features import bounds as bounds_of
from rasterio.features import rasterize
from rasterio.io import DatasetReader
from rasterio.warp import transform_bounds, transform_geom
from rio_tiler.constants import WGS84_CRS
from rio_tiler.errors import PointOutsideBounds, TileOutsideBounds
from rio_tiler.io import Reader
from rio_tiler.models import BandStatistics, ImageData, Info, PointData

from geomill.domain.assets.served import Scene
from geomill.errors import ConflictError
from geomill.raster.overview import WEB_MERCATOR, resolution_at
from geomill.raster.pictures import colored, picture, under
from geomill.raster.rendering import kind_of
from geomill.serve.raster.limits import LARGEST_SIDE, MOST_SCENES, Countdown
from geomill.serve.raster.many import ManyReader

if TYPE_CHECKING:
    from geomill.serve.raster.readers import RasterSource

Bounds = Sequence[float]
ALMOST = 1.01
"""The overview's pixels may be larger than requested by this factor."""


class SeriesReader(ManyReader):
    """Reads a series. `open_one` opens one file; `house` is as in `open_reader`."""

    def __init__(
        self, source: RasterSource, tms: TileMatrixSet, open_one: Callable[[str], Reader], *, house: bool
    ) -> None:
        assert source.series is not None
        self.input, self.tms, self.features, self.colormap = source, tms, Countdown(), None
        self._house, self._open, self._scenes = house, open_one, source.series.scenes
        self._opened = ExitStack()
        self._overview = self._opened.enter_context(open_one(source.path))
        dataset: DatasetReader = self._overview.dataset
        self.crs, self.bounds, self._resolution = dataset.crs, tuple(dataset.bounds), dataset.transform.a
        factor = max(self._resolution / resolution_at(source.series.zoom), 1.0)
        self._finest = self._resolution / factor
        self.width, self.height = round(dataset.width * factor), round(dataset.height * factor)
        self.transform = dataset.transform @ Affine.scale(1 / factor)

    def __exit__(self, *trouble: object) -> None:
        self._opened.close()

    def info(self) -> Info:
        """Return the info of the overview."""
        overview_info: Info = self._overview.info()
        return overview_info

    def statistics(self, **options: Any) -> dict[str, BandStatistics]:
        del options
        _refuse()

    def tile(self, tile_x: int, tile_y: int, tile_z: int, **options: Any) -> ImageData:
        self._check(options)
        if not self.tile_exists(tile_x, tile_y, tile_z):
            raise TileOutsideBounds(f"Tile(x={tile_x}, y={tile_y}, z={tile_z}) is outside bounds")
        bounds = tuple(self.tms.xy_bounds(Tile(tile_x, tile_y, tile_z)))
        pixels = options.get("tilesize") or self.tms.matrix(tile_z).tileWidth

        def read(reader: Reader, **chosen: Any) -> ImageData:
            return reader.tile(tile_x, tile_y, tile_z, **options, **chosen)

        return self._picture(bounds, self.tms.rasterio_crs, pixels, read)

    def part(self, bbox: Any, bounds_crs: CRS = WGS84_CRS, dst_crs: CRS | None = None, **options: Any) -> ImageData:
        self._check(options)
        wide, high = self._size(bbox, bounds_crs, dst_crs or bounds_crs, options)
        options |= {"width": wide, "height": high, "bounds_crs": bounds_crs, "dst_crs": dst_crs or bounds_crs}

        def read(reader: Reader, **chosen: Any) -> ImageData:
            return reader.part(bbox, **options, **chosen)

        return self._picture(bbox, bounds_crs, max(wide, high), read)

    def preview(self, **options: Any) -> ImageData:
        self._check(options)
        return _overview_picture(self._overview, lambda **chosen: self._overview.preview(**options, **chosen))

    def point(self, lon: float, lat: float, coord_crs: CRS = WGS84_CRS, **options: Any) -> PointData:
        """Return the values of the topmost scene that has data at this point."""
        for scene in self._touched((lon, lat, lon, lat), coord_crs):
            try:
                with self._open(self.input.gdal_path(scene.blob_path)) as reader:
                    values: PointData = reader.point(lon, lat, coord_crs=coord_crs, **options)
            except PointOutsideBounds:
                continue
            if not np.ma.getmaskarray(values.array).all():
                return values
        raise PointOutsideBounds("Point is outside dataset bounds")

    def feature(
        self, shape: dict[str, Any], shape_crs: CRS = WGS84_CRS, dst_crs: CRS | None = None, **options: Any
    ) -> ImageData:
        self.features.take()
        geometry = shape.get("geometry", shape)
        image = self.part(bounds_of(geometry), bounds_crs=shape_crs, dst_crs=dst_crs, **options)
        if dst_crs and dst_crs != shape_crs:
            geometry = transform_geom(shape_crs, dst_crs, geometry)
        inside = rasterize([geometry], (image.height, image.width), transform=image.transform, all_touched=True)
        return picture(image.array.data, (image.mask > 0) & (inside > 0), image)

    def _check(self, options: dict[str, Any]) -> None:
        choices = [options.pop(name, None) for name in ("indexes", "expression")]
        if not self._house or any(choices):
            _refuse()

    def _size(self, bbox: Bounds, crs: CRS, target: CRS, options: dict[str, Any]) -> tuple[int, int]:
        """Return the size of a crop: as requested, else as fine as the finest scene, within the limits."""
        left, bottom, right, top = transform_bounds(crs, target, *bbox, densify_pts=21) if crs != target else bbox
        ratio = (top - bottom) / (right - left) if right > left else 1.0
        wide, high = options.pop("width", None), options.pop("height", None)
        largest = min(options.pop("max_size", None) or LARGEST_SIDE // 2, LARGEST_SIDE)
        if wide or high:
            wide, high = wide or round(high / ratio), high or round(wide * ratio)
        else:
            west, south, east, north = transform_bounds(crs, WEB_MERCATOR, *bbox, densify_pts=21)
            whole = max(east - west, north - south) / self._finest
            side = min(largest, whole) if np.isfinite(whole) else largest
            wide, high = (side, side * ratio) if ratio < 1 else (side / ratio, side)
        return min(max(round(wide), 1), LARGEST_SIDE), min(max(round(high), 1), LARGEST_SIDE)

    def _picture(self, bounds: Bounds, crs: CRS, pixels: int, read: Callable[..., ImageData]) -> ImageData:
        if self._is_afar(bounds, crs, pixels):
            return _overview_picture(self._overview, lambda **chosen: read(self._overview, **chosen))
        result: ImageData | None = None
        for number, scene in enumerate(self._touched(bounds, crs)):
            if number == MOST_SCENES:  # below that many scenes the overview is shown
                far = _overview_picture(self._overview, lambda **chosen: read(self._overview, **chosen))
                return under(result, far) if result else far
            image = self._drawn(scene, read)
            if image is not None:
                result = under(result, image) if result else image
            if result is not None and result.mask.all():
                break
        if result is None:
            raise TileOutsideBounds("the series has no data there")
        return result

    def _drawn(self, scene: Scene, read: Callable[..., ImageData]) -> ImageData | None:
        with self._open(self.input.gdal_path(scene.blob_path)) as reader:
            try:
                return colored(
                    reader.dataset,
                    kind_of(scene.raster_type),
                    scene.statistics,
                    lambda **chosen: read(reader, **chosen),
                )
            except TileOutsideBounds:
                return None

    def _is_afar(self, bounds: Bounds, crs: CRS, pixels: int) -> bool:
        """Whether the overview is as fine as requested."""
        west, south, east, north = transform_bounds(crs, WEB_MERCATOR, *bounds, densify_pts=21)
        resolution = max(east - west, north - south) / pixels
        return not np.isfinite(resolution) or self._resolution <= resolution * ALMOST

    def _touched(self, bounds: Bounds, crs: CRS) -> Iterator[Scene]:
        """Yield the scenes that the bounds touch, from top to bottom."""
        west, south, east, north = transform_bounds(crs, WGS84_CRS, *bounds, densify_pts=21)
        for scene in self._scenes.values():
            box = scene.bbox or (-180, -90, 180, 90)
            high_enough = box[1] <= north and box[3] >= south
            beside = box[0] <= east and box[2] >= west
            if high_enough and (beside if box[0] <= box[2] else box[0] <= east or box[2] >= west):
                yield scene


def _overview_picture(overview: Reader, read: Callable[..., ImageData]) -> ImageData:
    return colored(overview.dataset, kind_of("rgba"), (), read)


def _refuse() -> NoReturn:
    raise ConflictError(
        "the scenes of a series may differ in bands and values, so the series as a whole has only images",
        remedy="name a scene as {asset_id}.{scene_id}",
    )
