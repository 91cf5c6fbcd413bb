"""The shortest programs that make the same tiles with rasterio alone: the design that we follow, without any of what is
around it; that of the specification, in two passes; and one warp of the whole file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from rasterio.enums import Resampling
from rasterio.io import MemoryFile
from rasterio.shutil import copy
from rasterio.vrt import WarpedVRT
from rasterio.warp import reproject
from rasterio.windows import Window
from rio_cogeo.cogeo import cog_translate

from geomill.raster.tiers import QUICK

CACHE = {"GDAL_CACHEMAX": 128 * 1024 * 1024, "GDAL_NUM_THREADS": "1"}
COG = {
    "driver": "COG", "COMPRESS": "DEFLATE", "LEVEL": QUICK, "PREDICTOR": "YES", "BLOCKSIZE": 512,
    "OVERVIEW_RESAMPLING": "AVERAGE", "BIGTIFF": "IF_SAFER", "NUM_THREADS": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    source: str
    target: str
    crs: str
    transform: tuple[float, ...]
    width: int
    height: int
    size: int

    def windows(self) -> Iterable[tuple[int, int, int, int]]:
        for row in range(0, self.height, self.size):
            for column in range(0, self.width, self.size):
                yield column, row, min(self.size, self.width - column), min(self.size, self.height - row)


def _place(work: Work, window: tuple[int, int, int, int]) -> Affine:
    return Affine(*work.transform) @ Affine.translation(window[0], window[1])


def _write(work: Work, window: tuple[int, int, int, int], data: Any, alpha: Any) -> None:
    name = Path(work.target) / f"{window[0]}_{window[1]}.tif"
    with MemoryFile() as memory:
        with memory.open(
            width=window[2],
            height=window[3],
            count=3,
            dtype="uint8",
            crs=work.crs,
            transform=_place(work, window),
            **COG,
        ) as target:
            target.write(data)
            if not alpha.all():
                target.write_mask(alpha)
        name.write_bytes(memory.read())


def _tile(job: tuple[Work, tuple[int, int, int, int]]) -> None:
    work, window = job
    with rasterio.Env(**CACHE), rasterio.open(work.source) as source:
        data = np.zeros((4, window[3], window[2]), "uint8")
        reproject(
            rasterio.band(source, [1, 2, 3]), data, dst_transform=_place(work, window), dst_crs=work.crs,
            dst_alpha=4, resampling=Resampling.bilinear, tolerance=0.01,
        )  # fmt: skip
        if data[3].any():
            _write(work, window, data[:3], data[3])


def one_pass(work: Work) -> None:
    """Reproject per tile into memory, COG in memory, two processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_tile, [(work, window) for window in work.windows()]))


SPECIFIED_TILE, SPECIFIED_OVERLAP = 8192, 512
"""The tiles of the specification: windows of the source, each with a margin to the right and below."""


def _extract(source: Any, folder: Path) -> Iterable[str]:
    """Cut the source as the specification does: read a window, write it to a buffer in memory, put that into the
    store."""
    for row in range(0, source.height, SPECIFIED_TILE):
        for column in range(0, source.width, SPECIFIED_TILE):
            width = min(SPECIFIED_TILE + SPECIFIED_OVERLAP, source.width - column)
            height = min(SPECIFIED_TILE + SPECIFIED_OVERLAP, source.height - row)
            part = Window(column, row, width, height)
            place = source.window_transform(part)
            with MemoryFile() as memory:
                with memory.open(**{**source.profile, "width": width, "height": height, "transform": place}) as target:
                    target.write(source.read(window=part))
                name = folder / f"{column}_{row}.tif"
                name.write_bytes(memory.read())
            yield str(name)


def _convert(job: tuple[Work, str]) -> None:
    """Convert a piece as the specification does: fetch it, run rio-cogeo in memory on a warped view of it, store the
    result."""
    work, piece = job
    profile = {"driver": "GTiff", "compress": "DEFLATE", "predictor": 2, "zlevel": 6, "tiled": True,
               "blockxsize": 512, "blockysize": 512, "interleave": "pixel"}  # fmt: skip
    with rasterio.Env(**CACHE), MemoryFile(Path(piece).read_bytes()) as fetched, MemoryFile() as converted:
        with (
            fetched.open() as source,
            WarpedVRT(source, crs=work.crs, resampling=Resampling.bilinear, add_alpha=True) as warped,
        ):
            cog_translate(
                warped, converted.name, profile, indexes=[1, 2, 3], add_mask=True, in_memory=True,
                overview_resampling="average", quiet=True,
            )  # fmt: skip
        (Path(work.target) / Path(piece).name).write_bytes(converted.read())


def two_passes(work: Work) -> None:
    """The specification's stages two and three: extract all tiles, one after the other; then convert them, two at a
    time."""
    folder = Path(work.target) / "pieces"
    folder.mkdir()
    with rasterio.Env(**CACHE), rasterio.open(work.source) as source:
        jobs = [(work, piece) for piece in _extract(source, folder)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_convert, jobs))
    shutil.rmtree(folder)


def whole(work: Work) -> str:
    """`gdalwarp -of COG` if there is one, else the same by rasterio; all cores. Says which."""
    target = str(Path(work.target) / "whole.tif")
    program = os.environ.get("BENCH_GDALWARP") or shutil.which("gdalwarp")
    if program:
        extent = rasterio.transform.array_bounds(work.height, work.width, Affine(*work.transform))
        subprocess.run(
            [program, "-q", "-of", "COG", "-t_srs", work.crs, "-r", "bilinear", "-multi", "-wo", "NUM_THREADS=ALL_CPUS",
             "-te", *map(str, extent), "-ts", str(work.width), str(work.height), "-dstalpha",
             "-co", "COMPRESS=DEFLATE", "-co", f"LEVEL={QUICK}", "-co", "PREDICTOR=YES",
             "-co", "NUM_THREADS=ALL_CPUS", work.source, target],
            check=True,
        )  # fmt: skip
        return "gdalwarp -of COG"
    with rasterio.Env(GDAL_CACHEMAX=512 * 1024 * 1024), rasterio.open(work.source) as source, WarpedVRT(
        source, crs=work.crs, transform=Affine(*work.transform), width=work.width, height=work.height,
        resampling=Resampling.bilinear, add_alpha=True, NUM_THREADS="ALL_CPUS",
    ) as warped:  # fmt: skip
        copy(warped, target, **{**COG, "NUM_THREADS": "ALL_CPUS"})
    return "WarpedVRT to COG"


def single(source_name: str, target: str, crs: str) -> None:
    """One small raster, in this process."""
    with rasterio.Env(**CACHE), rasterio.open(source_name) as source:
        with WarpedVRT(source, crs=crs) as warped:
            transform, width, height = warped.transform, warped.width, warped.height
        work = Work(source_name, target, crs, tuple(transform)[:6], width, height, max(width, height))
    _tile((work, (0, 0, width, height)))
