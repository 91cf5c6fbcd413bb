"""`geomill up` with Service Bus as the broker: a raster is published, and another application submits a job."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from geomill.queues.servicebus import open_bus
from geomill.queues.servicebus.bus import Posting
from tests.acceptance.conftest import Geomill
from tests.acceptance.running import eventually, ready, show_key
from tests.integration.raster.sources import SyntheticRaster
from tests.servicebus.running import RunningPeer, running_peer

pytestmark = pytest.mark.slow
REFS = ("--ref", "dataset_id=d", "--ref", "resource_id=pixels", "--ref", "version_id=v1")


def test_a_platform_runs_with_it(geomill: Geomill, prepared_data: Path, tmp_path: Path) -> None:
    source = tmp_path / "scene.tif"
    source.write_bytes(SyntheticRaster(np.arange(60_000, dtype="uint16").reshape(1, 200, 300)).encode())
    with running_peer() as peer:
        settings = {
            "GEOMILL_BROKER": "servicebus",
            "SERVICE_BUS_CONNECTION_STRING": str(peer.options.connection_string),
        }
        with ready(prepared_data, **settings) as (_, client):
            show_key(client, prepared_data)
            submitted = geomill(
                "--data", str(prepared_data), "assets", "submit", str(source), "--data-type", "raster", *REFS, "--wait"
            )
            assert submitted.code == 0, submitted.err
            asyncio.run(_send(peer))
            jobs = eventually(lambda: _jobs(client), "the job of the message")
            assert jobs[0]["submitted_by"] == "service-bus"
            assert client.get("/health").json()["status"] == "ok"
        queues = ("functionapp-tasks", "container-tasks", "dag-jobs")
        assert all(peer.tell("depth", name)["waiting"] == 0 for name in queues)


async def _send(peer: RunningPeer) -> None:
    body = json.dumps({"workflow_id": "hello_world", "input_params": {"name": "Ada"}})
    async with open_bus(peer.options) as bus:
        await bus.send("dag-jobs", [Posting("m1", body, 60.0)])


def _jobs(client: object) -> list[dict[str, str]]:
    answer = client.get("/api/v1/jobs", params={"workflow_id": "hello_world", "status": "completed"})  # type: ignore[attr-defined]
    jobs: list[dict[str, str]] = answer.json()["jobs"]
    return jobs
