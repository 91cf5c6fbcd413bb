"""A private PostgreSQL for the benchmarks, with fsync and synchronous commits on, as it would run for a user."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from geomill.embedded import Cluster
from geomill.store.connection import connect
from geomill.store.migrate import migrate

FOLDER = "BENCH_CLUSTER_FOLDER"


@contextmanager
def server() -> Iterator[str]:
    """Starts the cluster of this run, or joins it when a benchmark above has started it."""
    folder = os.environ.get(FOLDER)
    if folder:
        yield Cluster(Path(folder)).url("postgres")
        return
    cluster_folder = Path(tempfile.mkdtemp(prefix="geomill-bench-", dir="/var/tmp"))
    cluster_folder.chmod(0o755)
    os.environ[FOLDER] = str(cluster_folder)
    try:
        with Cluster(cluster_folder) as cluster:
            yield cluster.url("postgres")
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(cluster_folder, ignore_errors=True)


@contextmanager
def database(*, migrated: bool = True) -> Iterator[str]:
    with server() as url, psycopg.connect(url, autocommit=True) as admin:
        name = f"bench_{uuid4().hex[:8]}"
        admin.execute(f"CREATE DATABASE {name}")
        database_url = urlsplit(url)._replace(path=f"/{name}").geturl()
        if migrated:
            asyncio.run(_migrate(database_url))
        yield database_url
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def _migrate(url: str) -> None:
    async with await connect(url) as conn:
        await migrate(conn)
