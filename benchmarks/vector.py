"""Vectors: `vector_processing` of a GeoPackage, all repairs on, beside others that load the same file, in one run.

`BENCH_VECTOR_ROWS` sets the number of polygons, 1,000,000 when absent; 10,000,000 is the figure for memory.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyogrio
import shapely

from benchmarks import bare_vector
from benchmarks.bare_vector import timed
from benchmarks.figures import Figure
from benchmarks.raster import Peaks
from benchmarks.roles import BenchmarkClient, Roles, running
from benchmarks.server import database

ROWS = int(os.environ.get("BENCH_VECTOR_ROWS", "1000000"))
ROUNDS = int(os.environ.get("BENCH_VECTOR_ROUNDS", "3"))
MOST_GEOPANDAS = 200_000
WRITTEN_AT_ONCE = 200_000
CORNERS = 8
LOAD_SECONDS = """
SELECT extract(epoch FROM max(reported_at) - min(started_at)) FROM dagapp.dag_task_results
WHERE node_id = 'load' AND job_id = (SELECT job_id FROM dagapp.dag_jobs ORDER BY created_at DESC LIMIT 1)
"""


def make(path: Path, rows: int) -> None:
    """Polygons of eight corners all over the world, with three attributes, the same each time."""
    rng = np.random.default_rng(7)
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    for start in range(0, rows, WRITTEN_AT_ONCE):
        count = min(WRITTEN_AT_ONCE, rows - start)
        middle = np.column_stack([rng.uniform(-179, 179, count), rng.uniform(-80, 80, count)])
        radius = rng.uniform(0.001, 0.01, (count, CORNERS))
        rings = middle[:, None, :] + np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=-1)
        wkb = shapely.to_wkb(shapely.polygons(np.concatenate([rings, rings[:, :1]], axis=1)))
        features = pa.table(
            {
                "name": [f"place {number}" for number in range(start, start + count)],
                "number": rng.integers(0, 1_000_000, count),
                "value": rng.random(count),
                "wkb": pa.array(wkb, pa.binary()),
            }
        )
        options = {"geometry_type": "Polygon", "crs": "EPSG:4326", "driver": "GPKG", "geometry_name": "wkb"}
        pyogrio.write_arrow(features, path, layer="polygons", append=start > 0, **options)


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="geomill-bench-", dir="/var/tmp") as name, database() as url:
        folder = Path(name)
        uploads = folder / "bronze" / "uploads"
        uploads.mkdir(parents=True)
        (folder / "silver").mkdir()
        make(uploads / "polygons.gpkg", ROWS)
        make(uploads / "small.gpkg", 1_000)
        os.environ |= {"GEOMILL_BRONZE": str(folder / "bronze"), "GEOMILL_SILVER": str(folder / "silver")}
        with running(
            url, lambda client, roles: _measure(client, roles, folder, url), workers=1, concurrency=4
        ) as figures:
            yield from figures


async def _measure(client: BenchmarkClient, roles: Roles, folder: Path, url: str) -> list[Figure]:
    path = folder / "bronze/uploads/polygons.gpkg"
    inputs = {"container_name": "uploads", "datetime": "2024-01-01", "table_name": "bench"}
    for _ in range(2):
        small = await client.run("vector_processing", {**inputs, "file_name": "small.gpkg"})  # the second one is warm
    peaks = Peaks(roles.processes["worker"][0].pid)
    peaks.start()
    geomill_times, loads, bare, indexed = [], [], [], []
    for _ in range(ROUNDS):
        bare.append(timed(bare_vector.arrow_copy, path, url))
        indexed.append(timed(bare_vector.arrow_copy_and_index, path, url))
        geomill_times.append(await client.run("vector_processing", {**inputs, "file_name": "polygons.gpkg"}))
        loads.append(await client.number(LOAD_SECONDS))
    peak = peaks.stop()
    loaded = await client.number("SELECT count(*) FROM geo.bench")
    assert loaded == ROWS, f"{loaded} rows"
    some = min(ROWS, MOST_GEOPANDAS)
    frames = some / timed(bare_vector.geopandas_copy, path, url, some)
    geomill_rate, load, bare_rate, whole = (
        ROWS / statistics.median(times) for times in (geomill_times, loads, bare, indexed)
    )
    ogr = ROWS / timed(bare_vector.ogr2ogr, path, url)
    return [
        Figure(
            f"vector_processing, {ROWS:,} polygons",
            geomill_rate,
            "rows/s",
            "with repairs, key, index, statistics, STAC",
        ),
        Figure("  its load alone, with repairs", load, "rows/s", f"{load / bare_rate:.2f} of the bare COPY"),
        Figure(
            "  bare Arrow and binary COPY",
            bare_rate,
            "rows/s",
            f"we reach {geomill_rate / bare_rate:.2f} of it, with all else",
        ),
        Figure("  the same with key, index, statistics", whole, "rows/s", f"we reach {geomill_rate / whole:.2f} of it"),
        Figure(
            "  ogr2ogr with PG_USE_COPY, with index", ogr, "rows/s", f"we are {geomill_rate / ogr:.2f} times as fast"
        ),
        Figure(
            f"  geopandas to_postgis, {some:,}", frames, "rows/s", f"we are {geomill_rate / frames:.2f} times as fast"
        ),
        Figure("  peak memory of a handler process", peak, "MB"),
        Figure("vector_processing, 1,000 polygons", small, "s", "what a small job takes"),
    ]
