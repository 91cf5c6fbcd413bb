"""One running platform for all tests of the console, in all test processes of a run.

The process that needs it first starts `geomill up`; the end of the run stops it. Starting one takes ten seconds, and
the tests only add to it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.conftest import GEOMILL
from tests.acceptance.running import alive, eventually, free_port, is_ready
from tests.conftest import FOLDER
from tests.prepared import copy_prepared

FILE = "console.json"
HANDLERS = "tests.console.handlers"
ROOT = Path(__file__).parents[2]
_STARTED: list[subprocess.Popen[bytes]] = []
"""Keeps the process object: Python warns of one that goes while its process runs."""


@dataclass(frozen=True)
class SharedPlatform:
    url: str
    data: Path
    key: str

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, headers={"Authorization": f"Bearer {self.key}"})

    def link(self, *roles: str) -> str:
        """A one-time sign-in link with these roles of the administrator."""
        with self.client as client:
            answer = client.post("/api/v1/session/links", json={"roles": list(roles)} if roles else {})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["url"])

    def run(self, workflow_id: str, **inputs: Any) -> dict[str, Any]:
        """Run a job to its end, and return it."""
        with self.client as client:
            accepted = client.post("/api/v1/jobs", json={"workflow_id": workflow_id, "input_params": inputs})
            assert accepted.status_code == 202, accepted.text
            path = f"/api/v1/jobs/{accepted.json()['job_id']}"
            ended = ("completed", "failed", "cancelled")
            return eventually(
                lambda: job if (job := client.get(path).json()).get("status") in ended else None, f"the end of {path}"
            )


def shared_platform(workflows: Path) -> SharedPlatform:
    """Return the platform, and start it if this process is the first to need it."""
    run = Path(os.environ[FOLDER])
    with (run / "console.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (run / FILE).exists():
            (run / FILE).write_text(json.dumps(_start(run, workflows)))
    started = json.loads((run / FILE).read_text())
    data = Path(started["data"])
    return SharedPlatform(started["url"], data, (data / "admin.key").read_text().strip())


def _start(run: Path, workflows: Path) -> dict[str, Any]:
    data, port = run / "console", free_port()
    copy_prepared(data)
    url = f"http://127.0.0.1:{port}"
    with (run / "console.log").open("wb") as log:
        process = subprocess.Popen(
            [
                GEOMILL,
                "up",
                "--data",
                str(data),
                "--port",
                str(port),
                "--concurrency",
                "4",
                "--workflows",
                str(workflows),
            ],
            env={**os.environ, "GEOMILL_DRAIN_SECONDS": "5", "GEOMILL_HANDLERS": HANDLERS, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _STARTED.append(process)
    with httpx.Client(base_url=url, timeout=60) as client:
        eventually(lambda: process.poll() is not None or is_ready(client), "the platform of the console")
    assert process.poll() is None, (run / "console.log").read_text()[-2000:]
    return {"url": url, "data": str(data), "pid": process.pid}


def stop_shared_platform(run: Path) -> None:
    """Stop the platform, if there is one. Called when the run ends."""
    if not (run / FILE).exists():
        return
    pid = json.loads((run / FILE).read_text())["pid"]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 30
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if alive(pid):
        os.killpg(pid, signal.SIGKILL)
