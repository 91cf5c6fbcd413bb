"""`geomill up`: everything on one machine, whatever is killed, until it is told to stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.embedded.place import DataPlace
from tests.acceptance.conftest import GEOMILL, Geomill
from tests.acceptance.running import (
    PATIENCE,
    alive,
    children,
    client_of,
    eventually,
    free_port,
    is_live,
    is_ready,
    ready,
    run_job,
    running,
    show_key,
)


def postmaster(data: Path) -> int:
    location = data / "postgres" / "location"
    home = Path(location.read_text().strip()) if location.exists() else data / "postgres"
    return int((home / "pgdata" / "postmaster.pid").read_text().splitlines()[0])


def started_since(data: Path, former: int) -> int | None:
    try:
        pid = postmaster(data)
    except OSError:
        return None
    return pid if pid != former else None


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


@pytest.mark.slow
def test_everything_on_one_machine(data: Path) -> None:
    """The first start on an empty data folder makes the private database."""
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
        assert process.wait(PATIENCE) == 0
        left = [pid for pid in (*after.values(), server) if alive(pid)]
        assert left == []
        assert not (data / "gateway.url").exists()
        assert (data / "admin.key").read_text().strip() not in (data.parent / "log").read_text()


@pytest.mark.slow
def test_a_second_one_on_the_same_folder_says_who_runs_and_ends(prepared_data: Path, geomill: Geomill) -> None:
    data, port = prepared_data, free_port()

    def second() -> str:
        ended = geomill("up", "--data", str(data), "--port", str(free_port()))
        assert ended.code == 1
        assert ended.err.count("\n") == 1
        assert f"already runs on the data folder {data}: process {process.pid}, since 20" in ended.err
        return ended.err

    with running(data, port) as process:
        with DataPlace.of(data).locked():  # its database cannot start yet
            eventually(lambda: (data / "up.lock").exists() and (data / "up.lock").read_text(), "the lock")
            assert "http" not in second()
        eventually(lambda: (data / "gateway.url").exists(), "the address")
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


@pytest.mark.slow
def test_on_another_interface_the_key_is_asked_for_and_tls_is_recommended(database: str, tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        gateway = subprocess.Popen(
            [GEOMILL, "gateway", "--host", "0.0.0.0", "--port", str(port)],
            env={**os.environ, "GEOMILL_DATABASE_URL": database},
            stderr=log,
        )
    try:
        with client_of(port) as client:
            eventually(lambda: is_live(client), "live")
            answer = client.get("/health", headers={"host": "geo.example.org"})
            assert answer.status_code == 401
    finally:
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(PATIENCE) == 0
    assert "put a proxy with TLS in front of it" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_killed_supervisor_leaves_no_roles_behind_and_the_next_one_cleans_up(prepared_data: Path) -> None:
    data = prepared_data
    with ready(data) as (process, client):
        roles = children(process.pid)
        process.kill()
        process.wait()
        eventually(lambda: not any(alive(pid) for pid in roles.values()), "the roles are gone")
        server = postmaster(data)
        assert alive(server)
    with ready(data) as (process, client):
        show_key(client, data)
        assert '"completed"' in run_job(client)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert not alive(server)
