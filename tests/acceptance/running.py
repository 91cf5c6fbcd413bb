"""A running `geomill up`, and how tests look at it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.conftest import GEOMILL

PATIENCE = 180.0
"""Seconds. On a machine at load 20, everything takes ten times as long."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def children(pid: int) -> dict[str, int]:
    """The processes of a supervisor, by their role."""
    pids: dict[str, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == pid and "geomill.cli.child" in words:
                pids[words[words.index("geomill.cli.child") + 1]] = int(folder.name)
    return pids


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    deadline = time.monotonic() + patience
    while not (outcome := true()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)
    return outcome


@contextmanager
def running(data: Path, port: int, *options: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    with (data.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [GEOMILL, "up", "--data", str(data), "--port", str(port), "--concurrency", "4", *options],
            env={**os.environ, "GEOMILL_DRAIN_SECONDS": "5", **settings},
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()


@contextmanager
def ready(data: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A `geomill up` that is ready, and a client of its gateway."""
    port = free_port()
    with running(data, port, **settings) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        yield process, client


def client_of(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)


def show_key(client: httpx.Client, data: Path) -> None:
    client.headers["Authorization"] = f"Bearer {(data / 'admin.key').read_text().strip()}"


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def is_live(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def run_job(client: httpx.Client) -> str:
    answer = client.post("/api/v1/jobs", json={"workflow_id": "hello_world"})
    assert answer.status_code == 202, answer.text
    accepted = answer.json()
    with client.stream("GET", accepted["stream_url"]) as stream:
        text = "".join(stream.iter_text())
    assert "event: end" in text
    return text.rsplit("data: ", 1)[1]
