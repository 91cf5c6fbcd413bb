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

CACHE = {"GDAL_CACHEMAX": 128 * 1024 * 1024, "GDAL_NUM_THREADS": "1"}
COG = {
    "driver": "COG", "COMPRESS": "DEFLATE", "LEVEL": 6, "PREDICTOR": "YES", "BLOCKSIZE": 512,
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


def _cut(work: Work, name: Path, source: Any, window: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = 10**9, 10**9, 0, 0
    with WarpedVRT(
        source, crs=work.crs, transform=Affine(*work.transform), width=work.width, height=work.height
    ) as warped:
        from rasterio.warp import transform_bounds

        x0, y1 = warped.transform @ (window[0], window[1])
        x1, y0 = warped.transform @ (window[0] + window[2], window[1] + window[3])
        box = transform_bounds(work.crs, source.crs, x0, y0, x1, y1)
    corners = [~source.transform @ (x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    left, right = (
        max(0, int(min(c for c, _ in corners)) - 256),
        min(source.width, int(max(c for c, _ in corners)) + 256),
    )
    top, bottom = (
        max(0, int(min(r for _, r in corners)) - 256),
        min(source.height, int(max(r for _, r in corners)) + 256),
    )
    if right <= left or bottom <= top:
        return
    part = Window(left, top, right - left, bottom - top)
    profile = {**source.profile, "width": part.width, "height": part.height, "transform": source.window_transform(part)}
    with rasterio.open(name, "w", **profile) as target:
        target.write(source.read(window=part))


def _convert(job: tuple[Work, str]) -> None:
    """As the specification does it: rio-cogeo, in memory, from a warped view of the piece."""
    work, piece = job
    profile = {"driver": "GTiff", "compress": "DEFLATE", "predictor": 2, "zlevel": 6, "tiled": True,
               "blockxsize": 512, "blockysize": 512, "interleave": "pixel"}  # fmt: skip
    with (
        rasterio.Env(**CACHE),
        rasterio.open(piece) as source,
        WarpedVRT(source, crs=work.crs, resampling=Resampling.bilinear, add_alpha=True, tolerance=0.01) as warped,
    ):
        target = str(Path(work.target) / Path(piece).name)
        cog_translate(
            warped, target, profile, indexes=[1, 2, 3], add_mask=True, in_memory=True,
            overview_resampling="average", quiet=True,
        )  # fmt: skip


def two_passes(work: Work) -> None:
    """Cut all tiles out of the source, one after the other; then convert them, two at a time."""
    folder = Path(work.target) / "pieces"
    folder.mkdir()
    jobs = []
    with rasterio.Env(**CACHE), rasterio.open(work.source) as source:
        for window in work.windows():
            piece = folder / f"{window[0]}_{window[1]}.tif"
            _cut(work, piece, source, window)
            if piece.exists():
                jobs.append((work, str(piece)))
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
             "-co", "COMPRESS=DEFLATE", "-co", "PREDICTOR=YES", "-co", "NUM_THREADS=ALL_CPUS", work.source, target],
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
