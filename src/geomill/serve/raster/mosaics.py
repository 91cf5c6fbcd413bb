"""A mosaic as one raster: a virtual dataset over the files that a request touches.

The files are windows of one grid (see `raster/grid.py`), so GDAL reads across their edges without seams, and from their
overviews for small images. The MosaicJSON lists the files; the tiling scheme beside it gives their windows. Neither
changes within a revision, so each is read once.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from xml.sax.saxutils import escape

import rasterio
from rasterio.crs import CRS
from rasterio.dtypes import _gdal_typename
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import DatasetReader
from rasterio.warp import transform_bounds

from geomill.domain.objectname import ObjectName
from geomill.errors import ConflictError, InputError
from geomill.raster.grid import BLOCK, Grid, Window
from geomill.serve.raster.limits import MOST_TILES
from geomill.serve.raster.turning import TURNS
from geomill.storage import Storage

MOST_KEPT = 64
SCHEME = "tiling_scheme.geojson"
TILE = re.compile(r"tile_x?(?P<x>\d+)_y?(?P<y>\d+)(_cog)?\.tif$")
SMALLEST_OVERVIEW = 256
MARGIN = 16
"""Pixels added around a window for the kernel of a warp."""


@dataclass(frozen=True)
class Mosaic:
    grid: Grid
    parts: Sequence[tuple[Window, str]]
    """Windows, and the path that GDAL opens for each."""
    bands: str
    """XML of the bands, with a placeholder for the sources of each."""
    types: Sequence[str]
    """GDAL's names of the bands' data types."""
    masked: bool
    head: str

    @property
    def crs(self) -> CRS:
        return CRS.from_user_input(self.grid.crs)

    def touching(self, bounds: Sequence[float], crs: CRS, most: int | None = None) -> list[tuple[Window, str]]:
        """Return the files that the bounds touch. Raises `InputError` if they are more than one request may open."""
        windows = self._windows(bounds, crs)
        parts = [part for part in self.parts if any(_overlap(part[0], window) for window in windows)]
        most = MOST_TILES if most is None else most
        if len(parts) > most:
            raise InputError(
                f"the image needs {len(parts):,} files of the mosaic, and at most {most:,} are allowed",
                remedy="request a smaller area or a higher zoom",
            )
        return parts

    def virtual(self, parts: Iterable[tuple[Window, str]]) -> bytes:
        """Return the files as one GDAL virtual dataset (VRT), in XML."""
        bands = [(str(index), kind) for index, kind in enumerate(self.types, 1)]
        bands += [("mask,1", "Byte")] if self.masked else []
        parts = list(parts)
        sources = [[_source(window, path, band, kind) for window, path in parts] for band, kind in bands]
        return (
            self.head + self.bands.format(*("".join(band_sources) for band_sources in sources)) + "</VRTDataset>"
        ).encode()

    def _windows(self, bounds: Sequence[float], crs: CRS) -> list[tuple[float, float, float, float]]:
        """Return the bounds in pixels: first column, first row, last column, last row. In degrees there is one for each
        turn of the globe."""
        if crs != self.crs:
            bounds = transform_bounds(crs, self.crs, *bounds, densify_pts=21)
        left, bottom, right, top = bounds
        right = right + 360 if right < left and self.crs.is_geographic else right
        turns = TURNS if self.crs.is_geographic else (0,)
        return [self._window((left + turn, bottom, right + turn, top)) for turn in turns]

    def _window(self, bounds: Sequence[float]) -> tuple[float, float, float, float]:
        inverse = ~self.grid.affine
        left, top = inverse @ (bounds[0], bounds[3])
        right, bottom = inverse @ (bounds[2], bounds[1])
        if not all(abs(edge) < 1e15 for edge in (left, top, right, bottom)):  # outside the domain of the projection
            return 0, 0, self.grid.width, self.grid.height
        return left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN


class Mosaics:
    """Cache of opened mosaics. Safe for threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._mosaics: OrderedDict[tuple[ObjectName, ObjectName], Mosaic] = OrderedDict()
        self._lock = Lock()

    def open(self, name: ObjectName, scheme: ObjectName | None = None) -> Mosaic:
        """Open a mosaic. The tiling scheme lies beside it unless `scheme` is given."""
        beside = ObjectName(name.zone, name.container, posixpath.join(posixpath.dirname(name.path), SCHEME))
        key = (name, scheme or beside)
        with self._lock:
            if key in self._mosaics:
                self._mosaics.move_to_end(key)
                return self._mosaics[key]
        mosaic = self._read(*key)
        with self._lock:
            self._mosaics[key] = mosaic
            while len(self._mosaics) > MOST_KEPT:
                self._mosaics.popitem(last=False)
        return mosaic

    def _read(self, name: ObjectName, scheme_name: ObjectName) -> Mosaic:
        folder = posixpath.dirname(name.path)
        document, scheme = self._json(name), self._json(scheme_name)
        windows = {
            feature["id"]: Window(**dict(zip(("column", "row", "width", "height"), window, strict=True)))
            for feature in scheme["features"]
            for window in [feature["properties"]["window"]]
        }
        parts = []
        for path in sorted({path for paths in document["tiles"].values() for path in paths}):
            whole = posixpath.normpath(posixpath.join(folder, path))
            full = self._storage.gdal_path(ObjectName(name.zone, name.container, whole))
            parts.append((windows[_tile_id(path)], full))
        grid = Grid.model_validate(scheme["metadata"]["grid"])
        with rasterio.open(parts[0][1], driver="GTiff") as first:
            return _described(grid, parts, first)

    def _json(self, name: ObjectName) -> Any:
        return json.loads(self._storage.sync.read(name))


def _tile_id(path: str) -> str:
    """Return the tile id from a path in the layout of assets or of stage jobs."""
    match = TILE.search(path)
    if match is None:
        raise ConflictError(f"{path} does not have the name of a mosaic tile")
    return f"tile_x{match['x']}_y{match['y']}"


def _overlap(window: Window, box: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = box
    return (
        window.column < right
        and window.column + window.width > left
        and window.row < bottom
        and window.row + window.height > top
    )


def _described(grid: Grid, parts: Sequence[tuple[Window, str]], first: DatasetReader) -> Mosaic:
    """Describe the mosaic by its first file. All files have the same bands."""
    masked = MaskFlags.per_dataset in first.mask_flag_enums[0] and MaskFlags.alpha not in first.mask_flag_enums[0]
    place = ", ".join(f"{value!r}" for value in grid.affine.to_gdal())
    head = (
        f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">'
        f"<SRS>{escape(CRS.from_user_input(grid.crs).to_wkt())}</SRS><GeoTransform>{place}</GeoTransform>"
        f'<OverviewList resampling="nearest">{" ".join(map(str, _levels(grid)))}</OverviewList>'
    )
    head = head.replace('<OverviewList resampling="nearest"></OverviewList>', "")
    types = [_gdal_typename(dtype) for dtype in first.dtypes]
    bands = "".join(_band(first, index, types[index - 1]) for index in first.indexes)
    if masked:
        bands += '<MaskBand><VRTRasterBand dataType="Byte">{}</VRTRasterBand></MaskBand>'
    return Mosaic(grid, parts, bands, types, masked, head)


def _levels(grid: Grid) -> list[int]:
    levels, factor = [], 2
    while max(grid.width, grid.height) / factor >= SMALLEST_OVERVIEW:
        levels.append(factor)
        factor *= 2
    return levels


def _band(first: DatasetReader, index: int, kind: str) -> str:
    def element(tag: str, value: object) -> str:
        return f"<{tag}>{escape(str(value))}</{tag}>".replace("{", "{{").replace("}", "}}")

    color = first.colorinterp[index - 1]
    parts = [element("ColorInterp", color.name.capitalize())]
    if first.nodata is not None:
        parts.append(element("NoDataValue", repr(float(first.nodata))))
    if first.descriptions[index - 1]:
        parts.append(element("Description", first.descriptions[index - 1]))
    if (first.scales[index - 1], first.offsets[index - 1]) != (1.0, 0.0):
        parts += [element("Scale", first.scales[index - 1]), element("Offset", first.offsets[index - 1])]
    if color is ColorInterp.palette:
        colors = (color for _, color in sorted(first.colormap(index).items()))
        entries = (f'<Entry c1="{red}" c2="{green}" c3="{blue}" c4="{alpha}"/>' for red, green, blue, alpha in colors)
        parts.append(f"<ColorTable>{''.join(entries)}</ColorTable>")
    return f'<VRTRasterBand dataType="{kind}" band="{index}">{"".join(parts)}{{}}</VRTRasterBand>'


def _source(window: Window, path: str, band: str, kind: str) -> str:
    """Return a source of a band. Its properties let GDAL defer opening the file until it reads from it."""
    size = f'xSize="{window.width}" ySize="{window.height}"'
    return (
        f'<SimpleSource><SourceFilename relativeToVRT="0">{escape(path)}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand>"
        f'<SourceProperties RasterXSize="{window.width}" RasterYSize="{window.height}" DataType="{kind}"'
        f' BlockXSize="{BLOCK}" BlockYSize="{BLOCK}"/>'
        f'<SrcRect xOff="0" yOff="0" {size}/><DstRect xOff="{window.column}" yOff="{window.row}" {size}/>'
        "</SimpleSource>"
    )
