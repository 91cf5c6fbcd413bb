import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geomill.embedded import Cluster

FAST = {"fsync": "off", "shared_buffers": "32MB"}
SOURCE = Path(__file__).parents[3] / "src"
MakeCluster = Callable[..., Cluster]


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that the server's account can enter, which pytest's own, closed to others, is not."""
    folder = Path(tempfile.mkdtemp(prefix="gm-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data(open_folder: Path) -> Path:
    parent = Path(tempfile.mkdtemp(dir=open_folder))
    parent.chmod(0o777)
    return parent / "data"


@pytest.fixture(scope="module")
def stopped(open_folder: Path) -> Path:
    """A data folder with a cluster that was started and stopped once."""
    data = open_folder / "stopped"
    with Cluster(data, settings=FAST):
        pass
    (data / "postgres" / "port").unlink()
    return data


@pytest.fixture
def data_with_cluster(data: Path, stopped: Path) -> Path:
    """A copy, for tests about anything but the making of a cluster."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(stopped), str(data)], check=True)
    return data


@pytest.fixture
def make() -> Iterator[MakeCluster]:
    clusters: list[Cluster] = []

    def make_cluster(data: Path, **settings: str) -> Cluster:
        clusters.append(Cluster(data, settings=FAST | settings))
        return clusters[-1]

    yield make_cluster
    for cluster in clusters:
        cluster.stop("immediate")


@pytest.fixture(scope="module")
def running(open_folder: Path) -> Iterator[Cluster]:
    """One cluster for all tests that only look."""
    with Cluster(open_folder / "shared", settings=FAST) as cluster:
        yield cluster


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.002)


def spawn(code: str, *, uid: int | None = None) -> subprocess.Popen[str]:
    """A Python process of its own. It becomes `uid` only after its imports, for its interpreter may lie in a folder
    that is closed to that user."""
    program = f"""
import os, sys
from pathlib import Path
from geomill.embedded import Cluster
from geomill.errors import EmbeddedError
uid = {uid}
if uid is not None:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
{code}
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        cwd="/",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
