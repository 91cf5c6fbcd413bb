"""Rasters of many kinds, small, seeded, written into a folder's bronze zone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.io import MemoryFile

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.submission import Submission
from geomill.sdk import ObjectName, Storage, Zone

UTM = "EPSG:32633"
UTM_PLACE = Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0)
CONTAINER = "uploads"


@dataclass
class SyntheticRaster:
    """`data` has the bands first."""

    data: NDArray[Any]
    crs: Any = UTM
    transform: Affine = UTM_PLACE
    nodata: float | None = None
    mask: NDArray[np.uint8] | None = None
    colors: tuple[ColorInterp, ...] | None = None
    colormap: dict[int, tuple[int, int, int, int]] | None = None
    options: dict[str, Any] = field(default_factory=lambda: {"tiled": True, "blockxsize": 128, "blockysize": 128})
    overviews: tuple[int, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def encode(self) -> bytes:
        count, height, width = self.data.shape
        profile: dict[str, Any] = {"driver": "GTiff", "count": count, "height": height, "width": width}
        profile |= {"dtype": self.data.dtype, "crs": self.crs, "transform": self.transform, "nodata": self.nodata}
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), MemoryFile() as memory:
            with memory.open(**profile, **self.options) as target:
                self._fill(target)
            if self.overviews:
                with rasterio.open(memory.name, "r+") as target:
                    target.build_overviews(self.overviews)
            return bytes(memory.read())

    def _fill(self, target: Any) -> None:
        if self.colors:
            target.colorinterp = self.colors
        if self.colormap:
            target.write_colormap(1, self.colormap)
        target.update_tags(**self.tags)
        for index, name in enumerate(self.names, 1):
            target.set_band_description(index, name)
        target.write(self.data)
        if self.mask is not None:
            target.write_mask(self.mask)


def noise(
    shape: tuple[int, ...], dtype: str = "uint8", low: float = 1, high: float = 250, rough: float = 0.2
) -> NDArray[Any]:
    """Smooth with a share of noise, as pictures are."""
    rng = np.random.default_rng(1)
    height, width = shape[-2:]
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([np.sin(x / (13 + 3 * b)) * np.cos(y / (17 + 2 * b)) for b in range(shape[0])])
    values = (waves + 1) / 2 * (high - low) * (1 - rough) + low + rng.random(shape) * (high - low) * rough
    return values.astype(dtype)


def submission(refs: dict[str, Any], file_names: list[str], **fields: Any) -> Submission:
    """The order of a raster of the platform ddh."""
    named = {"platform_id": "ddh", "data_type": DataType.RASTER, "container_name": CONTAINER}
    return Submission(**named, platform_refs=refs, file_names=file_names, **fields)


def put(storage: Storage, raster: SyntheticRaster | bytes, file_name: str = "a.tif") -> ObjectName:
    name = ObjectName(Zone.BRONZE, CONTAINER, file_name)
    path = Path(storage.gdal_path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raster if isinstance(raster, bytes) else raster.encode())
    return name


def rgb(side: int = 300, **fields: Any) -> SyntheticRaster:
    return SyntheticRaster(noise((3, side, side + 40)), **fields)


def rgba(side: int = 300) -> SyntheticRaster:
    data = np.concatenate([noise((3, side, side)), np.full((1, side, side), 255, "uint8")])
    data[3, :60, :90] = 0
    colors = (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)
    return SyntheticRaster(data, colors=colors)


def eight_bands(side: int = 256) -> SyntheticRaster:
    return SyntheticRaster(noise((8, side, side), "uint16", 100, 9_000), nodata=0, names=tuple("abcdefgh"))


def dem(side: int = 300, **fields: Any) -> SyntheticRaster:
    data = noise((1, side, side), "float32", -20, 2_000)
    data[:, 100:140, 50:200] = -9999
    return SyntheticRaster(data, nodata=-9999, **fields)


def int16(side: int = 256) -> SyntheticRaster:
    data = noise((1, side, side), "int16", -500, 3_000)
    data[:, 10:40, 10:40] = -32768
    return SyntheticRaster(data, nodata=-32768)


CLASSES = {0: (0, 0, 0, 255), 1: (255, 0, 0, 255), 5: (0, 200, 0, 255), 9: (0, 0, 250, 255)}


def categorical(side: int = 256) -> SyntheticRaster:
    rng = np.random.default_rng(3)
    data = np.repeat(np.repeat(rng.choice([1, 5, 9], (1, side // 8, side // 8)), 8, 1), 8, 2).astype("uint8")
    return SyntheticRaster(data, nodata=0, colormap=CLASSES)


def bits(side: int = 256) -> SyntheticRaster:
    rng = np.random.default_rng(4)
    data = np.repeat(np.repeat(rng.choice([0, 1], (1, side // 8, side // 8)), 8, 1), 8, 2).astype("uint8")
    return SyntheticRaster(data, options={"tiled": True, "blockxsize": 128, "blockysize": 128, "nbits": 1})


def masked(side: int = 300) -> SyntheticRaster:
    mask = np.full((side, side), 255, "uint8")
    mask[50:150, 60:220] = 0
    return SyntheticRaster(noise((3, side, side)), mask=mask)


POLAR = Affine(1_000.0, 0.0, -1_200_000.0, 0.0, -1_000.0, -1_000_000.0)
LAEA = "+proj=laea +lat_0=10 +lon_0=20 +x_0=1000 +y_0=2000 +a=6378000 +b=6356000 +units=m +no_defs"
DEGREES = Affine(0.001, 0.0, 14.0, 0.0, -0.001, 46.0)
ANTIMERIDIAN = Affine(100.0, 0.0, 820_000.0 - 15_000, 0.0, -100.0, 1_800_000.0)
"""In UTM zone 60, over 180 degrees."""
