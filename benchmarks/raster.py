"""Rasters: `process_large_raster` beside bare programs that make the same tiles, in one run; memory; a small raster.

`BENCH_RASTER_MB` sets the megabytes of pixels of the large one, 300 when absent. Say 2048 for the figure that counts.
`BENCH_RASTER_HUGE_MB`, absent by default, adds a sparse one of that size, by which memory can be seen not to grow.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine
from rasterio.windows import Window

from benchmarks import bare_raster
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, running
from benchmarks.server import database
from geomill.raster.grid import tile_size
from geomill.raster.planning import output_grid

MEGABYTES = int(os.environ.get("BENCH_RASTER_MB", "300"))
HUGE_MEGABYTES = int(os.environ.get("BENCH_RASTER_HUGE_MB", "0"))
ROUNDS = 2
SMALL_MEGABYTES = 25
UTM = Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0)


def make(path: Path, megabytes: int) -> None:
    """RGB, 8 bits, tiled; waves with some noise, the same each time."""
    side = int((megabytes * 1024 * 1024 / 3) ** 0.5) // 16 * 16
    rng = np.random.default_rng(7)
    grain = rng.integers(0, 12, (3, 512, side + 512), dtype="uint8")
    profile = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8", "crs": "EPSG:32633"}
    layout = {"transform": UTM, "tiled": True, "blockxsize": 512, "blockysize": 512, "BIGTIFF": "IF_SAFER"}
    columns = np.arange(side)
    with rasterio.open(path, "w", **profile, **layout) as target:
        for row in range(0, side, 512):
            height = min(512, side - row)
            rows = np.arange(row, row + height)[:, None]
            waves = [np.sin(columns / (90 + 20 * b)) * np.cos(rows / (70 + 30 * b)) * 100 + 115 for b in range(3)]
            shift = (row * 7) % 512
            data = np.stack(waves).astype("uint8") + grain[:, :height, shift : shift + side]
            target.write(data, window=Window(0, row, side, height))


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds, CPU seconds and the result. On a busy machine, compare the CPU seconds."""
    begun, used = time.monotonic(), _used()
    result = work()
    return time.monotonic() - begun, _used() - used, result


def _used() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _used_by(roles: Roles) -> float:
    """Return the CPU seconds of all roles and of their child processes that still run."""
    pids = [process.pid for process in roles.everyone()]
    everyone = [*pids, *(child for pid in pids for child in _children(pid))]
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in everyone]
    return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextmanager
def clean(folder: Path) -> Iterator[str]:
    folder.mkdir()
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder)


class Peaks(threading.Thread):
    """The largest memory of each process below one, as the kernel has noted it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peaks, self._stop_it = pid, {0: 0.0}, threading.Event()

    def run(self) -> None:
        while not self._stop_it.wait(0.1):
            for child in _children(self.pid):
                self.peaks[child] = max(self.peaks.get(child, 0.0), _high_water(child))

    def stop(self) -> float:
        self._stop_it.set()
        self.join()
        return max(self.peaks.values())


def _high_water(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="geomill-bench-", dir="/var/tmp") as name, database() as url:
        folder = Path(name)
        uploads = folder / "bronze" / "uploads"
        uploads.mkdir(parents=True)
        (folder / "silver").mkdir()
        make(uploads / "large.tif", MEGABYTES)
        make(uploads / "small.tif", SMALL_MEGABYTES)
        os.environ |= {"GEOMILL_BRONZE": str(folder / "bronze"), "GEOMILL_SILVER": str(folder / "silver")}
        with running(url, lambda client, roles: _measure(client, roles, folder), workers=1, concurrency=2) as figures:
            yield from figures


async def _measure(client: BenchmarkClient, roles: Roles, folder: Path) -> list[Figure]:
    large, small = folder / "bronze/uploads/large.tif", folder / "bronze/uploads/small.tif"
    with rasterio.open(large) as dataset:
        grid, _ = output_grid(dataset, "EPSG:4326")
    size = tile_size(grid, 3)
    inputs = {"container_name": "uploads", "datetime": "2024-01-01"}
    await client.run("process_large_raster", {**inputs, "file_name": "small.tif"})  # loads what has to be loaded

    def bare(program: Callable[[bare_raster.Work], Any]) -> tuple[float, float, Any]:
        with clean(folder / "bare") as target:
            work = bare_raster.Work(str(large), target, grid.crs, grid.transform, grid.width, grid.height, size)
            return timed(lambda: program(work))

    peaks = Peaks(roles.processes["worker"][0].pid)
    peaks.start()
    geomill_times, best, our_cpu, best_cpu = [], [], 0.0, 0.0
    for _ in range(ROUNDS):
        seconds, cpu, _nothing = bare(bare_raster.one_pass)
        best.append(seconds)
        best_cpu += cpu / ROUNDS
        used = _used_by(roles)
        geomill_times.append(
            await client.run("process_large_raster", {**inputs, "file_name": "large.tif", "target_crs": "EPSG:4326"})
        )
        our_cpu += (_used_by(roles) - used) / ROUNDS
        shutil.rmtree(folder / "silver" / "cogs")
    peak = peaks.stop()
    two, two_cpu, _nothing = bare(bare_raster.two_passes)
    whole, one_cpu, which = bare(bare_raster.whole)
    geomill_seconds, bare_seconds = statistics.median(geomill_times), statistics.median(best)
    figures = [
        Figure(
            f"process_large_raster, {MEGABYTES} MB of pixels",
            MEGABYTES / geomill_seconds,
            "MB/s",
            f"tiles of {size}, {our_cpu:.1f} s of CPU",
        ),
        Figure(
            "  bare program of the same design",
            MEGABYTES / bare_seconds,
            "MB/s",
            f"we reach {bare_seconds / geomill_seconds:.2f} of it, {best_cpu / our_cpu:.2f} by CPU",
        ),
        Figure(
            "  the specification's two passes",
            MEGABYTES / two,
            "MB/s",
            f"we are {two / geomill_seconds:.2f} times as fast, {two_cpu / our_cpu:.2f} by CPU",
        ),
        Figure(
            f"  {which}, whole file",
            MEGABYTES / whole,
            "MB/s",
            f"we are {whole / geomill_seconds:.2f} times as fast, {one_cpu / our_cpu:.2f} by CPU",
        ),
        Figure("  peak memory of a handler process", peak, "MB"),
    ]
    figures += await _small(client, small, folder, inputs)
    return [*figures, *await _huge(client, roles, folder, inputs)] if HUGE_MEGABYTES else figures


async def _huge(client: BenchmarkClient, roles: Roles, folder: Path, inputs: dict[str, Any]) -> list[Figure]:
    side = int((HUGE_MEGABYTES * 1024 * 1024 / 3) ** 0.5) // 16 * 16
    profile = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8", "crs": "EPSG:32633"}
    layout = {
        "transform": UTM,
        "tiled": True,
        "blockxsize": 512,
        "blockysize": 512,
        "BIGTIFF": "YES",
        "SPARSE_OK": True,
    }
    with rasterio.open(folder / "bronze/uploads/huge.tif", "w", **profile, **layout) as target:
        for place in range(0, side - 512, 2048):  # something in every tile along the diagonal
            target.write(np.full((3, 512, 512), 7, "uint8"), window=Window(place, place, 512, 512))
    peaks = Peaks(roles.processes["worker"][0].pid)
    peaks.start()
    seconds = await client.run("process_large_raster", {**inputs, "file_name": "huge.tif", "target_crs": "EPSG:4326"})
    note = f"{HUGE_MEGABYTES / seconds:.1f} MB/s, sparse"
    return [Figure(f"peak memory of a handler process, {HUGE_MEGABYTES} MB of pixels", peaks.stop(), "MB", note)]


async def _small(client: BenchmarkClient, small: Path, folder: Path, inputs: dict[str, Any]) -> list[Figure]:
    geomill_times, bare = [], []
    for _ in range(3):
        with clean(folder / "bare") as target:
            bare.append(timed(lambda target=target: bare_raster.single(str(small), target, "EPSG:3857"))[0])
        geomill_times.append(
            await client.run("raster_processing", {**inputs, "file_name": "small.tif", "target_crs": "EPSG:3857"})
        )
    geomill_seconds, bare_seconds = statistics.median(geomill_times), statistics.median(bare)
    note = f"bare COG {bare_seconds:.2f} s; 2 times and 0.5 s are {2 * bare_seconds + 0.5:.2f} s"
    return [Figure(f"raster_processing, {SMALL_MEGABYTES} MB", geomill_seconds, "s", note)]
