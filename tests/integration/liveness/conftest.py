from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from geomill.embedded import Cluster
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from tests.integration.liveness.stage import Stage


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Of this module's own, because it is stopped and started. What it commits is on disk."""
    folder = Path(tempfile.mkdtemp(prefix="gm-live-", dir="/var/tmp"))
    folder.chmod(0o755)
    cluster = Cluster(folder / "data", settings={"max_connections": "200"})
    cluster.start()
    asyncio.run(_migrate(cluster.url()))
    yield cluster
    cluster.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


async def _migrate(url: str) -> None:
    async with await connect(url) as conn:
        await migrate(conn)


@pytest.fixture
def stage(cluster: Cluster, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(cluster, cluster.url(), tmp_path)
    yield stage
    stage.close()
    with psycopg.connect(cluster.url(), autocommit=True) as conn:
        conn.execute("TRUNCATE dagapp.dag_jobs, dagapp.dag_queue, dagapp.dag_inbox, dagapp.dag_instances CASCADE")
