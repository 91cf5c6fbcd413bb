"""The very commands and settings of the manifests publish a raster, from the migration to the external server."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.acceptance.conftest import Geomill
from tests.chaos.network import why_not
from tests.deploy.kubernetes.manifests import KustomizeOverlay
from tests.deploy.kubernetes.pods import Pod, PodCluster, submitted
from tests.integration.raster.sources import SyntheticRaster

pytestmark = pytest.mark.slow
SERVERS = ("gateway", "internal", "external")
OTHERS = ("orchestrator", "worker-light", "worker-heavy")


@pytest.fixture
def pods() -> Iterator[PodCluster]:
    if reason := why_not():
        pytest.skip(reason)
    with PodCluster(KustomizeOverlay("postgres")) as pods:
        yield pods


def reaches(pod: Pod, port: int) -> bool:
    """Whether a program in the pod's network reaches a port of the host that no policy names."""
    program = f"import socket; socket.create_connection(('{pod.network.server}', {port}), timeout=0.5)"
    run = subprocess.run([*pod.network.inside, sys.executable, "-c", program], capture_output=True, check=False)
    assert run.returncode == 0 or b"TimeoutError" in run.stderr, run.stderr
    return run.returncode == 0


def test_the_manifests_publish_a_raster(pods: PodCluster, geomill: Geomill, tmp_path: Path) -> None:
    assert pods.start("migrate").wait(120) == 0, pods.pods["migrate"].log.read_text()
    for name in (*SERVERS, *OTHERS):
        pods.start(name)
    for name in SERVERS:
        pods.wait_for(name)
    pods.wait_for_platform()

    key, addresses = pods.key(), {name: pods.pods[name].address for name in SERVERS}
    pixels = tmp_path / "pixels.tif"
    pixels.write_bytes(SyntheticRaster(np.arange(256 * 256, dtype=np.uint16).reshape(1, 256, 256)).encode())
    asset_id = submitted(geomill, addresses["gateway"], key, pixels)

    for name, address in addresses.items():
        with httpx.Client(base_url=address, timeout=60) as client:
            assert client.get("/stac/search").json()["numberMatched"] == 1, name
            picture = client.get(f"/raster/assets/{asset_id}/preview.png")
            assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png"), name
    assert httpx.get(f"{addresses['gateway']}/api/v1/jobs").status_code == 401

    for name in OTHERS:  # nobody can call them, whatever they listen on
        with pytest.raises(TimeoutError), socket.create_connection((pods.pods[name].network.roles, 8000), timeout=0.5):
            pass
    for pod in pods.pods.values():
        with socket.create_server((pod.network.server, 0)) as listener:
            assert not reaches(pod, listener.getsockname()[1]), pod.workload.name
    for name in (*OTHERS, *SERVERS):
        assert pods.pods[name].stop() == 0, pods.pods[name].log.read_text()[-3000:]
