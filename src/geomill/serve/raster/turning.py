"""Longitudes modulo 360: rasters that reach beyond 180°, and requests that do.

GDAL compares plain numbers, so a request is read once for each turn of the globe at which it touches the raster. The
raster is turned for that, not the request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from affine import Affine
from morecantile import Tile
from rasterio.crs import CRS
from rasterio.warp import transform, transform_bounds
from rio_tiler.constants import WGS84_CRS
from rio_tiler.io import Reader
from rio_tiler.io.base import SpatialMixin
from rio_tiler.models import ImageData, PointData

from geomill.raster.extent import Placed
from geomill.raster.planning import finest_side

TURNS = (0, -360, 360)
Box = Sequence[float]


def turns_of(box: Box, bounds: Box) -> list[int]:
    """Return the turns at which a box touches the bounds. Both are in degrees."""
    west, south, east, north = box
    east = east + 360 if east < west else east
    high_enough = south < bounds[3] and north > bounds[1]
    return [turn for turn in TURNS if high_enough and west + turn < bounds[2] and east + turn > bounds[0]]


class TurningMixin(SpatialMixin):
    """Bounds, tiles and zooms of rasters anywhere on the globe."""

    def get_geographic_bounds(self, crs: CRS) -> tuple[float, float, float, float]:
        """Return the bounds in degrees. Maps know no bounds beyond 180°, so they get all longitudes instead."""
        west, south, east, north = super().get_geographic_bounds(crs)
        if west > east or west < -180 or east > 180:
            west, east = -180.0, 180.0
        return west, max(south, -90.0), east, min(north, 90.0)

    def tile_exists(self, tile_x: int, tile_y: int, tile_z: int) -> bool:
        if not self.crs.is_geographic:
            exists: bool = super().tile_exists(tile_x, tile_y, tile_z)
            return exists
        bounds = tuple(self.tms.xy_bounds(Tile(tile_x, tile_y, tile_z)))
        if self.tms.rasterio_crs != self.crs:
            bounds = transform_bounds(self.tms.rasterio_crs, self.crs, *bounds, densify_pts=21)
        if not all(map(math.isfinite, bounds)):
            return True
        left, bottom, right, top = self.bounds
        return bool(turns_of(bounds, (left, min(bottom, top), right, max(bottom, top))))

    @property
    def _dst_geom_in_tms_crs(self) -> tuple[Affine, int, int]:
        """Return the size of pixels in the system of the tiles, from which rio-tiler takes the zooms. It would take it
        from the extent, which says nothing about pixels on a map of the world."""
        box = self.tms.xy_bbox
        side = finest_side(cast("Placed", self), self.tms.rasterio_crs, (box.left, box.bottom, box.right, box.top))
        return Affine(side, 0, 0, 0, -side, 0), self.width or 1, self.height or 1


class TurningReader(TurningMixin, Reader):
    """Reads a raster whose longitudes may go beyond 180°, or requests that do."""

    def part(
        self, bbox: Any, dst_crs: Any = None, bounds_crs: Any = WGS84_CRS, *args: Any, **options: Any
    ) -> ImageData:
        def read(turn: int) -> ImageData:
            turned = {"src_transform": Affine.translation(-turn, 0) @ cast("Affine", self.transform)} if turn else {}
            chosen = {"vrt_options": {**(options.get("vrt_options") or {}), **turned}} if turned else {}
            return super(TurningReader, self).part(bbox, dst_crs, bounds_crs, *args, **{**options, **chosen})

        whole, *others = [read(turn) for turn in self._turns(bbox, bounds_crs) or [0]]
        for image in others:
            hidden = np.ma.getmaskarray(whole.array) & ~np.ma.getmaskarray(image.array)
            data = np.where(hidden, image.array.data, whole.array.data)
            whole.array = np.ma.MaskedArray(data, mask=np.ma.getmaskarray(whole.array) & ~hidden)
        return whole

    def point(self, lon: float, lat: float, coord_crs: Any = WGS84_CRS, *args: Any, **options: Any) -> PointData:
        if not self.crs.is_geographic:
            return super().point(lon, lat, coord_crs, *args, **options)
        x, y = lon, lat
        if coord_crs != self.crs:
            xs, ys = transform(coord_crs, self.crs, [lon], [lat])
            x, y = xs[0], ys[0]
        left, _, right, _ = self.bounds
        inside = [x + turn for turn in TURNS if left <= x + turn < right] or [x]
        value = super().point(inside[0], y, self.crs, *args, **options)
        value.coordinates = (lon, lat)
        return value

    def _turns(self, bbox: Any, crs: CRS) -> list[int]:
        if not self.crs.is_geographic:
            return [0]
        box = bbox if crs.is_geographic else transform_bounds(crs, self.crs, *bbox, densify_pts=21)
        return turns_of(box, self.bounds)
