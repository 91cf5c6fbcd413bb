"""Rasters of odd places, shapes and formats. The values of most follow from the place of each pixel, so that a test
knows them without the code under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import rasterio
from affine import Affine
from numpy.typing import NDArray

from tests.integration.raster import sources
from tests.integration.raster.sources import SyntheticRaster

Box = tuple[float, float, float, float]
MERCATOR = 20_037_508.342789244
NODATA = -9999.0
WORLD: Box = (-180, -90, 180, 90)
FIJI: Box = (178, -20, 183, -15)
PLACES: dict[str, tuple[str, Box, float]] = {
    "world": ("EPSG:4326", WORLD, 2.0),
    "world from 0 to 360": ("EPSG:4326", (0, -90, 360, 90), 2.0),
    "world at the centres of pixels": ("EPSG:4326", (-181, -91, 179, 91), 2.0),
    "beyond 180 east": ("EPSG:4326", FIJI, 0.1),
    "beyond 180 west": ("EPSG:4326", (-185, -20, -175, -10), 0.1),
    "Alaska": ("EPSG:3338", (-2_200_000, 400_000, 1_500_000, 2_400_000), 40_000),
    "Antarctica": ("EPSG:3031", (-3_000_000, -3_000_000, 3_000_000, 3_000_000), 60_000),
    "Arctic": ("EPSG:3413", (-3_000_000, -3_000_000, 3_000_000, 3_000_000), 60_000),
    "Equal Earth": ("EPSG:8857", (-17_250_000, -8_400_000, 17_250_000, 8_400_000), 150_000),
    "Mollweide": ("ESRI:54009", (-18_100_000, -9_050_000, 18_100_000, 9_050_000), 150_000),
}


def value_at(longitudes: NDArray[Any], latitudes: NDArray[Any]) -> NDArray[np.float64]:
    """A smooth value of each place on the globe, also at the poles and at the antimeridian."""
    turn = np.radians(longitudes)
    around: NDArray[np.float64] = np.cos(np.radians(latitudes)) * (400 * np.sin(turn) + 200 * np.cos(turn))
    return 1000 + around + 3 * latitudes


def degrees(crs: Any, affine: Affine, height: int, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Longitudes and latitudes of the centres of pixels, by pyproj. Not a number beside the globe."""
    columns, rows = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    xs, ys = affine @ (columns, rows)
    system = pyproj.CRS.from_user_input(crs)
    if system.is_geographic:
        return xs, ys
    change = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    longitudes, latitudes = change.transform(xs, ys)
    back_x, back_y = change.transform(longitudes, latitudes, direction="INVERSE")
    with np.errstate(invalid="ignore"):
        outside = ~(np.hypot(back_x - xs, back_y - ys) < abs(affine.a) / 10)
    return np.where(outside, np.nan, longitudes), np.where(outside, np.nan, latitudes)


def globe(crs: str, box: Box, pixel: float) -> SyntheticRaster:
    width, height = round((box[2] - box[0]) / pixel), round((box[3] - box[1]) / pixel)
    affine = Affine(pixel, 0, box[0], 0, -pixel, box[3])
    values = value_at(*degrees(crs, affine, height, width))
    data = np.where(np.isfinite(values), values, NODATA).astype("float32")
    return SyntheticRaster(data[None], crs=crs, transform=affine, nodata=NODATA)


LINES: dict[str, Callable[[], SyntheticRaster]] = {
    "column": lambda: globe("EPSG:4326", (15, -40, 15.5, 10), 0.5),
    "row": lambda: globe("EPSG:4326", (15, 10, 65, 10.5), 0.5),
    "pixel": lambda: globe("EPSG:4326", (15, 10, 15.5, 10.5), 0.5),
    "70,000 by 3": lambda: globe("EPSG:4326", (15, -15.0006, 29, -15), 0.0002),
}


PICTURE_PLACE = Affine(10, 0, 500_000, 0, -10, 5_000_000)


@dataclass(frozen=True)
class CorpusRaster:
    """A source. `write` writes it into a folder, and returns the file that is submitted."""

    write: Callable[[Path], Path]
    options: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    """The code of the refusal. Its message names the program that converts the source."""
    mercator: bool = True
    """Whether Web Mercator shows all of it."""
    slow: bool = False


def tiff(make: Callable[[], SyntheticRaster]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "a.tif"
        path.write_bytes(make().encode())
        return path

    return write


def by_gdal(driver: str, ending: str, dtype: str = "int16", **options: Any) -> Callable[[Path], Path]:
    """A raster in another format, as GDAL writes it."""

    def write(folder: Path) -> Path:
        path = folder / f"a.{ending}"
        data = sources.noise((1, 120, 160), dtype)
        profile = {"count": 1, "height": 120, "width": 160, "dtype": dtype, "crs": "EPSG:32633"}
        with rasterio.open(path, "w", driver=driver, transform=PICTURE_PLACE, **profile, **options) as target:
            target.write(data)
        return path

    return write


def picture(folder: Path) -> Path:
    """A PNG, whose place is in the world file beside it."""
    path = by_gdal("PNG", "png", "uint8", WORLDFILE="YES")(folder)
    Path(f"{path}.aux.xml").unlink(missing_ok=True)
    (folder / "a.wld").rename(folder / "a.pgw")
    return path


def palette() -> SyntheticRaster:
    colormap = {number: (40 * number, 255 - 40 * number, 9 * number, 255) for number in range(6)}
    return SyntheticRaster(sources.noise((1, 90, 110), "uint8", 0, 5), colormap=colormap)


UNHOLDABLE = ("beyond 180 east", "beyond 180 west", "Alaska", "Arctic", "Antarctica")
"""Places that Web Mercator cuts or cannot show."""

RASTERS: dict[str, CorpusRaster] = {
    **{
        name: CorpusRaster(tiff(lambda place=place: globe(*place)), mercator=name not in UNHOLDABLE)  # type: ignore[misc]
        for name, place in PLACES.items()
    },
    **{name: CorpusRaster(tiff(make), slow="70,000" in name) for name, make in LINES.items()},
    "world at a tenth of a degree": CorpusRaster(tiff(lambda: globe("EPSG:4326", WORLD, 0.1)), slow=True),
    "world by centres of 0.1 degree": CorpusRaster(
        tiff(lambda: globe("EPSG:4326", (-180.05, -90.05, 179.95, 90.05), 0.1)), slow=True
    ),
    "palette": CorpusRaster(tiff(palette)),
    "signed bytes": CorpusRaster(
        tiff(lambda: SyntheticRaster(sources.noise((1, 90, 110), "int8", -100, 100))),
        mercator=False,  # it does, but gdalwarp of Debian 12 takes them for unsigned ones
    ),
    "doubles": CorpusRaster(tiff(lambda: SyntheticRaster(sources.noise((2, 90, 110), "float64"), nodata=-1e30))),
    "strips": CorpusRaster(tiff(lambda: SyntheticRaster(sources.noise((3, 90, 110)), options={"interleave": "band"}))),
    "JPEG 2000": CorpusRaster(by_gdal("JP2OpenJPEG", "jp2", QUALITY="100", REVERSIBLE="YES")),
    "PNG with a world file": CorpusRaster(picture, options={"source_crs": "EPSG:32633"}),
    "HFA": CorpusRaster(by_gdal("HFA", "img"), refused="unsupported_format"),
    "HFA, compressed": CorpusRaster(by_gdal("HFA", "img", COMPRESSED="YES"), refused="unsupported_format"),
    "raster in a GeoPackage": CorpusRaster(
        by_gdal("GPKG", "gpkg", "uint8", TILE_FORMAT="PNG"), refused="unsupported_format"
    ),
    "ENVI": CorpusRaster(by_gdal("ENVI", "dat"), refused="unsupported_format"),
}
