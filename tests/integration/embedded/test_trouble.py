"""Trouble around a cluster: crashes, other users, races, closed folders."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest

from geomill.embedded import Cluster, State, place
from geomill.errors import EmbeddedError

from .conftest import FAST, spawn, until

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def answers(cluster: Cluster) -> bool:
    with psycopg.connect(cluster.url(), connect_timeout=60) as connection:
        return connection.execute("SELECT true").fetchone()[0]


def kill_server(cluster: Cluster) -> None:
    pid = cluster.status().pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.status().pid != pid)


def test_processes_that_start_at_once_get_one_server_that_outlives_them(make, data):
    code = f"c = Cluster(Path({str(data)!r}), settings={FAST!r}); print(c.start(), c.status().pid)"
    starters = [spawn(code) for _ in range(3)]
    answered = [starter.communicate(timeout=300)[0].split() for starter in starters]
    assert sorted(started for started, _ in answered) == ["False", "False", "True"]
    assert len({pid for _, pid in answered}) == 1
    assert answers(make(data))


def test_a_killed_server_is_started_again_with_its_data_once_its_last_backend_is_gone(make, data_with_cluster):
    cluster = make(data_with_cluster)
    cluster.start()
    with psycopg.connect(cluster.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        connection.commit()
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        kill_server(cluster)
        waker = threading.Timer(0.7, os.kill, (backend, signal.SIGCONT))
        waker.start()
        began = time.monotonic()
        assert cluster.start() is True
        assert time.monotonic() - began > 0.5
        waker.join()
        connection.close()
    with psycopg.connect(cluster.url()) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_pid_file_that_names_another_program_is_overcome(make, data_with_cluster):
    cluster = make(data_with_cluster)
    cluster.start()
    file = cluster.status().folder / "pgdata" / "postmaster.pid"
    owner, text = file.stat(), file.read_text().splitlines()
    cluster.stop()
    # The file belongs to the user of the server. Otherwise the server would not take it for that of a living server.
    as_owner = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    stranger = subprocess.Popen(["sleep", "60"], cwd="/", **as_owner)
    try:
        file.write_text("\n".join([str(stranger.pid), *text[1:]]) + "\n")
        shutil.chown(file, owner.st_uid, owner.st_gid)
        assert cluster.status().state is State.STOPPED
        assert cluster.stop() is False, "the stranger is not stopped"
        assert cluster.start() is True
        assert stranger.poll() is None
        assert answers(cluster)
    finally:
        stranger.kill()
        stranger.wait()


def test_an_interrupted_making_is_begun_anew(make, data):
    left = data / "postgres" / "making-abc" / "pgdata"
    left.mkdir(parents=True)
    data.joinpath("postgres").chmod(0o711)
    (left / "PG_VERSION").write_text("15\n")
    cluster = make(data)
    assert cluster.start() is True
    assert answers(cluster)
    assert list((data / "postgres").glob("making-*")) == []


def test_a_making_killed_half_way_is_begun_anew(make, data):
    maker = spawn(f"Cluster(Path({str(data)!r}), settings={FAST!r}).start()")
    until(lambda: list(data.glob("postgres/making-*/pgdata/PG_VERSION")))
    maker.kill()
    maker.communicate()
    assert not (data / "postgres" / "pgdata").exists()
    cluster = make(data)
    assert cluster.start() is True
    assert answers(cluster)


def test_a_folder_that_is_no_cluster_is_set_aside_not_deleted(make, data):
    strange = data / "postgres" / "pgdata"
    strange.mkdir(parents=True)
    data.joinpath("postgres").chmod(0o711)
    (strange / "notes.txt").write_text("mine")
    if os.geteuid() == 0:
        shutil.chown(strange, NOBODY, NOBODY)
    assert make(data).start() is True
    (aside,) = (data / "postgres").glob("pgdata.incomplete-*")
    assert (aside / "notes.txt").read_text() == "mine"


def test_a_cluster_of_another_version_is_refused_and_left_alone(data):
    pgdata = data / "postgres" / "pgdata"
    (pgdata / "global").mkdir(parents=True)
    (pgdata / "global" / "pg_control").touch()
    (pgdata / "PG_VERSION").write_text("99\n")
    with pytest.raises(EmbeddedError, match=r"needs PostgreSQL 99, but PostgreSQL \d+ is installed.*pg_upgrade"):
        Cluster(data).start()
    assert (pgdata / "PG_VERSION").read_text() == "99\n"


def test_a_port_that_was_taken_meanwhile_is_given_up(make, data_with_cluster):
    cluster = make(data_with_cluster)
    cluster.start()
    port = cluster.status().port
    cluster.stop()
    with socket.create_server(("127.0.0.1", port)):
        cluster.start()
        assert cluster.status().port != port
        assert answers(cluster)
        assert str(cluster.status().port) in cluster.url()


def test_a_long_data_folder_works(make, data):
    cluster = make(data / ("very long " * 9) / ("ü" * 60))
    cluster.start()
    socket_folder = cluster.status().socket_folder
    try:
        assert len(str(socket_folder)) < 85
        assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
        assert answers(cluster)
    finally:
        cluster.stop("immediate")
        shutil.rmtree(socket_folder)


def test_a_start_that_fails_tells_what_the_server_said_and_can_be_repeated(make, data):
    with pytest.raises(EmbeddedError) as raised:
        Cluster(data, settings={"fsync": "off", "shared_buffers": "plenty"}).start()
    assert 'invalid value for parameter "shared_buffers": "plenty"' in raised.value.message
    assert "postgresql.local.conf" in raised.value.remedy
    assert make(data).start() is True


def test_a_closed_folder_is_refused_and_nothing_is_written(open_folder):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o755)
    if os.geteuid() != 0:
        closed.chmod(0o555)
    code = f"""
try:
    Cluster(Path({str(closed)!r})).start()
except EmbeddedError as error:
    print(error)
"""
    output, _ = spawn(code, uid=NOBODY if os.geteuid() == 0 else None).communicate(timeout=300)
    assert output.startswith(f"the data folder {closed} cannot be written")
    assert output.strip().endswith("choose another folder with GEOMILL_DATA")
    assert list(closed.iterdir()) == []


@as_root
def test_a_plain_user_runs_his_own_and_root_joins_in(make, data):
    code = f"c = Cluster(Path({str(data)!r}), settings={FAST!r}); print(c.start(), c.url())"
    output, _ = spawn(code, uid=NOBODY).communicate(timeout=300)
    started, url = output.split()
    assert started == "True"
    assert (data / "postgres").stat().st_uid == NOBODY
    assert stat.S_IMODE((data / "postgres").stat().st_mode) == 0o700
    cluster = make(data)
    assert cluster.url() == url
    assert answers(cluster)
    assert cluster.stop() is True
    assert cluster.start() is True, "root starts it as its owner"
    assert Path(f"/proc/{cluster.status().pid}").stat().st_uid == NOBODY


@as_root
def test_roots_closed_home_gets_its_cluster_elsewhere(make, open_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(place, "SYSTEM_HOMES", open_folder / "var-lib")
    tmp_path.chmod(0o700)
    cluster = make(tmp_path / "geomill")
    cluster.start()
    status = cluster.status()
    assert status.folder.parent == open_folder / "var-lib"
    assert (tmp_path / "geomill" / "postgres" / "password").exists()
    assert not (status.folder / "password").exists()
    assert answers(cluster)
    cluster.stop()
    assert cluster.start() is True
    assert cluster.status().folder == status.folder
