"""Other programs on the same file: the shortest one on Arrow and binary COPY, without and with what a table needs to be
served, geopandas, and ogr2ogr. None of them repairs anything."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg

COLUMNS = "fid bigint, name text, number bigint, value double precision, geom geometry"
TYPES = ("int8", "text", "int8", "float8", "bytea")


def timed(work: Any, *arguments: Any) -> float:
    begun = time.monotonic()
    work(*arguments)
    return time.monotonic() - begun


def arrow_copy(path: Path, url: str) -> None:
    """One process, row by row."""
    import pyogrio

    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"DROP TABLE IF EXISTS bare; CREATE TABLE bare ({COLUMNS})")
        with (
            pyogrio.open_arrow(path, use_pyarrow=True, return_fids=True) as (_, reader),
            conn.cursor() as cursor,
            cursor.copy("COPY bare FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types(TYPES)
            for batch in reader:
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)


def arrow_copy_and_index(path: Path, url: str) -> None:
    """The same, and then key, spatial index and statistics, one after the other."""
    arrow_copy(path, url)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SET maintenance_work_mem = '256MB'")
        conn.execute("ALTER TABLE bare ADD PRIMARY KEY (fid)")
        conn.execute("CREATE INDEX ON bare USING gist (geom)")
        conn.execute("ANALYZE bare")


def geopandas_copy(path: Path, url: str, rows: int) -> None:
    import geopandas
    import sqlalchemy

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    frame = geopandas.read_file(path, rows=rows)
    frame.to_postgis("bare_geopandas", engine, if_exists="replace")
    engine.dispose()


def ogr2ogr(path: Path, url: str) -> None:
    program = shutil.which("ogr2ogr")
    if program is None:
        raise RuntimeError("no ogr2ogr: run script/setup --tests")
    keys = psycopg.conninfo.conninfo_to_dict(url)
    target = "PG:" + " ".join(f"{key}='{value}'" for key, value in keys.items())
    command = [program, "-f", "PostgreSQL", target, str(path), "-nln", "bare_ogr", "-overwrite"]
    command += ["--config", "PG_USE_COPY", "YES", "-nlt", "PROMOTE_TO_MULTI", "-lco", "UNLOGGED=OFF"]
    subprocess.run(command, check=True, capture_output=True)
