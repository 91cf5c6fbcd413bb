"""`geomill up`: everything on one machine, whatever is killed, until it is told to stop."""

from __future__ import annotations

import contextlib
import json
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
import pytest

from tests.acceptance.conftest import GEOMILL, Geomill

PATIENCE = 50.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def children(pid: int) -> dict[str, int]:
    """The processes of a supervisor, by their role."""
    found: dict[str, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == pid and "geomill.cli.child" in words:
                found[words[words.index("geomill.cli.child") + 1]] = int(folder.name)
    return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    deadline = time.monotonic() + patience
    while not (found := true()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)
    return found


@contextmanager
def running(data: Path, port: int, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
    with (data.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [GEOMILL, "up", "--data", str(data), "--port", str(port), "--concurrency", "4"],
            env={**environ, "GEOMILL_DRAIN_SECONDS": "5", **settings},
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def client_of(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20)


def show_key(client: httpx.Client, data: Path) -> None:
    client.headers["Authorization"] = f"Bearer {(data / 'admin.key').read_text().strip()}"


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").status_code == 200
    except httpx.HTTPError:
        return False


def is_live(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
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


def postmaster(data: Path) -> int:
    location = data / "postgres" / "location"
    home = Path(location.read_text().strip()) if location.exists() else data / "postgres"
    return int((home / "pgdata" / "postmaster.pid").read_text().splitlines()[0])


def started_since(data: Path, former: int) -> int | None:
    try:
        found = postmaster(data)
    except OSError:
        return None
    return found if found != former else None


def assert_only_the_key_opens(data: Path, port: int) -> None:
    assert (data / "admin.key").stat().st_mode & 0o777 == 0o600
    assert (data / "gateway.url").read_text() == f"http://127.0.0.1:{port}\n"
    curl = ["curl", "-s", "-i", f"http://127.0.0.1:{port}/api/v1/jobs"]
    answer = subprocess.run(curl, capture_output=True, text=True, check=True).stdout
    head, body = answer.split("\n\n" if "\r\n" not in answer else "\r\n\r\n", 1)
    assert " 401 " in head.splitlines()[0]
    assert "content-type: application/problem+json" in head.lower()
    assert "www-authenticate: bearer" in head.lower()
    assert json.loads(body)["code"] == "unauthenticated"
    key = (data / "admin.key").read_text().strip()
    with_key = subprocess.run([*curl, "-H", f"X-API-Key: {key}"], capture_output=True, text=True, check=True).stdout
    assert " 200 " in with_key.splitlines()[0]


def test_everything_on_one_machine(data: Path) -> None:
    port = free_port()
    with running(data, port) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        show_key(client, data)
        assert '"completed"' in run_job(client)
        assert_only_the_key_opens(data, port)

        before = children(process.pid)
        assert set(before) == {"orchestrator", "worker", "gateway", "serve"}
        os.kill(before["worker"], signal.SIGKILL)
        after = eventually(
            lambda: (now := children(process.pid)).get("worker") not in (None, before["worker"]) and now,
            "a new worker",
        )
        eventually(lambda: is_ready(client), "ready again")
        assert '"completed"' in run_job(client)

        first = postmaster(data)
        os.kill(first, signal.SIGKILL)
        server = eventually(lambda: started_since(data, first), "a new server")
        eventually(lambda: is_ready(client), "ready on it")
        assert '"completed"' in run_job(client)

        log = (data.parent / "log").read_text()
        assert f"geomill is ready: http://127.0.0.1:{port}" in log
        assert "worker was killed by signal 9" in log
        process.send_signal(signal.SIGTERM)
        assert process.wait(25) == 0
        left = [pid for pid in (*after.values(), server) if alive(pid)]
        assert left == []
        assert not (data / "gateway.url").exists()
        assert (data / "admin.key").read_text().strip() not in (data.parent / "log").read_text()


def test_a_second_one_on_the_same_folder_says_who_runs_and_ends(data: Path, geomill: Geomill) -> None:
    port = free_port()

    def second() -> str:
        ended = geomill("up", "--data", str(data), "--port", str(free_port()))
        assert ended.code == 1
        assert ended.err.count("\n") == 1
        assert f"already runs on the data folder {data}: process {process.pid}, since 20" in ended.err
        return ended.err

    with running(data, port) as process:
        eventually(lambda: (data / "up.lock").exists() and (data / "up.lock").read_text(), "the lock")
        assert "http" not in second()
        eventually(lambda: (data / "gateway.url").exists(), "the address", 3 * PATIENCE)
        assert f"at http://127.0.0.1:{port};" in second()
        assert (data / "gateway.url").read_text() == f"http://127.0.0.1:{port}\n"


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """A data folder on a disk of 20 MB."""
    data.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "tmpfs", data], check=False).returncode:
        pytest.skip("this system lets nobody mount a disk")
    try:
        yield data
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_disk_that_is_too_small_at_the_first_start_is_one_sentence(geomill: Geomill, small_disk: Path) -> None:
    ended = geomill("up", "--data", str(small_disk), "--port", "0")
    assert ended.code == 1
    assert ended.err.startswith("error: the disk of ")
    assert "a new database needs 300 MB" in ended.err
    assert ended.err.count("\n") == 1
    with contextlib.suppress(OSError), (small_disk / "filler").open("wb") as filler:
        while True:
            filler.write(bytes(100_000))
            filler.flush()
    ended = geomill("up", "--data", str(small_disk), "--port", "0")
    assert ended.code in (1, 2)
    assert " 0 MB free" in ended.err or "No space left on device" in ended.err
    assert ended.err.count("\n") == 1


def test_on_another_interface_the_key_is_asked_for_and_tls_is_recommended(database: str, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        gateway = subprocess.Popen(
            [GEOMILL, "gateway", "--host", "0.0.0.0", "--port", str(port)],
            env={**environ, "GEOMILL_DATABASE_URL": database},
            stderr=log,
        )
    try:
        with client_of(port) as client:
            eventually(lambda: is_live(client), "live")
            answer = client.get("/health", headers={"host": "geo.example.org"})
            assert answer.status_code == 401
    finally:
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(20) == 0
    assert "let a proxy with TLS stand before it" in (tmp_path / "log").read_text()


def test_a_killed_supervisor_leaves_no_roles_behind_and_the_next_one_cleans_up(data: Path) -> None:
    port = free_port()
    with running(data, port) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        show_key(client, data)
        roles = children(process.pid)
        process.kill()
        process.wait()
        eventually(lambda: not any(alive(pid) for pid in roles.values()), "the roles are gone", 20)
        server = postmaster(data)
        assert alive(server)
    with running(data, port) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        show_key(client, data)
        assert '"completed"' in run_job(client)
        process.send_signal(signal.SIGTERM)
        assert process.wait(25) == 0
        assert not alive(server)
