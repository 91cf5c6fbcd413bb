from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from geomill.embedded import Cluster
from tests.integration.liveness.stage import LivenessStage
from tests.prepared import copy_prepared


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of this module's own, because it is stopped and started. Its commits are on disk."""
    folder = Path(tempfile.mkdtemp(prefix="gm-live-", dir="/var/tmp"))
    folder.chmod(0o755)
    copy_prepared(folder / "data", durable=True)
    cluster = Cluster(folder / "data", settings={"max_connections": "200"})
    cluster.start()
    yield cluster
    cluster.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stage(cluster: Cluster, tmp_path: Path) -> Iterator[LivenessStage]:
    stage = LivenessStage(cluster, cluster.url(), tmp_path)
    yield stage
    stage.close()
    with psycopg.connect(cluster.url(), autocommit=True) as conn:
        conn.execute("TRUNCATE dagapp.dag_jobs, dagapp.dag_queue, dagapp.dag_inbox, dagapp.dag_instances CASCADE")
