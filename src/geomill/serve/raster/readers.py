"""TiTiler readers of one raster, which is a file or a mosaic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rasterio
from morecantile import Tile, TileMatrixSet
from rasterio.crs import CRS
from rasterio.errors import RasterioIOError
from rasterio.features import bounds as bounds_of
from rasterio.io import MemoryFile
from rio_tiler.constants import WEB_MERCATOR_TMS, WGS84_CRS
from rio_tiler.errors import PointOutsideBounds, TileOutsideBounds
from rio_tiler.expression import get_expression_blocks
from rio_tiler.io import BaseReader, Reader
from rio_tiler.models import BandStatistics, ImageData, Info, PointData

from geomill.domain.assets.served import Series, Served
from geomill.domain.objectname import ObjectName
from geomill.errors import ConflictError
from geomill.raster.grid import Window
from geomill.raster.opening import LARGEST_BLOCK, block_bytes
from geomill.serve.raster.limits import LARGEST_SIDE, Countdown
from geomill.serve.raster.many import ManyReader
from geomill.serve.raster.mosaics import Mosaic, Mosaics
from geomill.serve.raster.painting import ChosenStyle, Painter
from geomill.serve.raster.series import SeriesReader
from geomill.serve.raster.turning import TurningReader

WITHOUT_OVERVIEWS = 4096
"""The largest width and height of a raster without overviews. A small image of a larger one would read every pixel."""


@dataclass(frozen=True, slots=True)
class RasterSource:
    """The raster that a request reads from."""

    served: Served
    name: ObjectName
    path: str
    """The path that GDAL opens."""
    mosaics: Mosaics
    scheme: ObjectName | None = None
    """The tiling scheme, if it does not lie beside the mosaic."""
    series: Series | None = None
    """The series whose overview this raster is."""
    gdal_path: Callable[[str], str] = str
    """Returns the path that GDAL opens for a container and path."""


def open_reader(
    source: RasterSource,
    tms: TileMatrixSet = WEB_MERCATOR_TMS,
    *,
    house: bool = False,
    chosen: ChosenStyle | None = None,
    values: bool = False,
) -> BaseReader:
    """Open the reader of a raster. `house` applies the default colours to images, and `chosen` those of a style.
    `values` ignores the palette of the file."""
    if source.series:
        return SeriesReader(source, tms, lambda path: CogReader(path, tms=tms), house=house)
    painter = Painter(source.served, chosen) if house or chosen else None
    if source.served.mosaic:
        return MosaicReader(source.mosaics.open(source.name, source.scheme), tms, painter, values=values)
    return CogReader(source.path, painter, tms=tms, values=values)


class CogReader(TurningReader):
    """Reads one GeoTIFF. It allows no other driver: a file that was published unchanged may have another format, and
    some formats make GDAL read other files."""

    def __init__(
        self,
        path: str,
        painter: Painter | None = None,
        *,
        tms: TileMatrixSet = WEB_MERCATOR_TMS,
        values: bool = False,
    ) -> None:
        self.painter, self.features = painter, Countdown()
        try:
            dataset = rasterio.open(path, driver="GTiff")
        except RasterioIOError as error:
            raise ConflictError(
                "the published file is not a readable GeoTIFF", remedy="publish it through a raster workflow"
            ) from error
        large = max(dataset.width, dataset.height) > WITHOUT_OVERVIEWS
        if block_bytes(dataset) > LARGEST_BLOCK or (large and not dataset.overviews(1)):
            dataset.close()
            raise ConflictError(
                "the raster has no tiles or overviews for maps", remedy="publish it as a COG through a raster workflow"
            )
        super().__init__(path, dataset=dataset, tms=tms)
        self._ctx_stack.enter_context(dataset)
        if values:
            self.colormap = None

    def part(self, bbox: Any, *args: Any, **options: Any) -> ImageData:
        return self._painted(super().part, bbox, *args, **options)

    def read(self, *args: Any, **options: Any) -> ImageData:
        return self._painted(super().read, *args, **options)

    def point(self, *args: Any, **options: Any) -> PointData:
        return with_names(super().point(*args, **options), self.dataset, options.get("expression"))

    def feature(self, shape: dict[str, Any], *args: Any, **options: Any) -> ImageData:
        self.features.take()
        return super().feature(shape, *args, **options)

    def _painted(self, read: Callable[..., ImageData], *args: Any, **options: Any) -> ImageData:
        if self.painter is None:
            return read(*args, **options)
        image, self.colormap = self.painter.paint(self.dataset, read, *args, **options)
        return image


class MosaicReader(ManyReader):
    def __init__(
        self,
        mosaic: Mosaic,
        tms: TileMatrixSet = WEB_MERCATOR_TMS,
        painter: Painter | None = None,
        *,
        values: bool = False,
    ) -> None:
        self.input, self.tms, self.painter, self.features = mosaic, tms, painter, Countdown()
        self._values = values
        self.crs, self.bounds = mosaic.crs, mosaic.grid.bounds
        self.transform, self.width, self.height = mosaic.grid.affine, mosaic.grid.width, mosaic.grid.height
        self.colormap: dict[int, Any] | None = None

    def info(self) -> Info:
        """Return the info of the first file, which holds for all."""
        with self._reading(self.input.parts[:1]) as reader:
            return reader.info()

    def statistics(self, **options: Any) -> dict[str, BandStatistics]:
        return self.preview().statistics(**options)

    def tile(self, tile_x: int, tile_y: int, tile_z: int, **options: Any) -> ImageData:
        if not self.tile_exists(tile_x, tile_y, tile_z):
            raise TileOutsideBounds(f"Tile(x={tile_x}, y={tile_y}, z={tile_z}) is outside bounds")
        parts = self.input.touching(self.tms.xy_bounds(Tile(tile_x, tile_y, tile_z)), self.tms.rasterio_crs)
        with self._reading(parts) as reader:
            return self._painted(reader, reader.tile, tile_x, tile_y, tile_z, **options)

    def part(self, bbox: Any, bounds_crs: CRS = WGS84_CRS, **options: Any) -> ImageData:
        with self._reading(self.input.touching(bbox, bounds_crs)) as reader:
            return self._painted(reader, reader.part, bbox, bounds_crs=bounds_crs, **options)

    def preview(self, **options: Any) -> ImageData:
        with self._reading(self.input.touching(self.bounds, self.crs)) as reader:
            return self._painted(reader, reader.preview, **options)

    def point(self, lon: float, lat: float, coord_crs: CRS = WGS84_CRS, **options: Any) -> PointData:
        try:
            with self._reading(self.input.touching((lon, lat, lon, lat), coord_crs)) as reader:
                point = reader.point(lon, lat, coord_crs=coord_crs, **options)
                return with_names(point, reader.dataset, options.get("expression"))
        except TileOutsideBounds:
            raise PointOutsideBounds("Point is outside dataset bounds") from None

    def feature(self, shape: dict[str, Any], shape_crs: CRS = WGS84_CRS, **options: Any) -> ImageData:
        self.features.take()
        with self._reading(self.input.touching(bounds_of(shape), shape_crs)) as reader:
            return self._painted(reader, reader.feature, shape, shape_crs=shape_crs, **options)

    @contextmanager
    def _reading(self, parts: Sequence[tuple[Window, str]]) -> Iterator[Reader]:
        if not parts:
            raise TileOutsideBounds("the raster has no data there")
        with MemoryFile(self.input.virtual(parts), ext=".vrt") as file, file.open(driver="VRT") as dataset:
            yield TurningReader(None, dataset=dataset, tms=self.tms)

    def _painted(self, reader: Reader, read: Callable[..., ImageData], *args: Any, **options: Any) -> ImageData:
        if self.painter is None:
            self.colormap = None if self._values else reader.colormap
            return read(*args, **options)
        image, self.colormap = self.painter.paint(reader.dataset, read, *args, **options)
        return image


def with_names(point: PointData, dataset: Any, expression: str | None) -> PointData:
    """Describe each value by its own band. rio-tiler describes all by the last one."""
    if expression:
        point.band_descriptions = get_expression_blocks(expression)
    else:
        texts = [dataset.descriptions[int(name.removeprefix("b")) - 1] for name in point.band_names]
        point.band_descriptions = [text or name for text, name in zip(texts, point.band_names, strict=True)]
    return point


def part_size(max_size: int | None, width: int | None, height: int | None) -> int | None:
    """Return the maximum size of a crop. The default bounds it, so that it is not as large as the data."""
    return None if width or height else max_size or LARGEST_SIDE // 2
