import os
import sys
from pathlib import Path

import pytest

from geomill.embedded import postmaster
from geomill.embedded.postmaster import Postmaster, is_server_of, parse, recorded, remove_stale_pid_file, running

READY = "123\n/data/pgdata\n1763196000\n45831\n/data/socket\n127.0.0.1\n  9 0\nready   \n"


def pid_file(folder: Path, pid: int) -> Path:
    file = folder / "postmaster.pid"
    file.write_text(READY.replace("123", str(pid), 1))
    return file


def test_a_pid_file_is_read():
    assert parse(READY) == Postmaster(123, 45831, Path("/data/socket"), "ready")
    assert parse(READY).is_ready


@pytest.mark.parametrize("lines", range(1, 8))
def test_a_pid_file_is_read_while_the_server_still_writes_it(lines):
    parsed = parse("\n".join(READY.splitlines()[:lines]))
    assert parsed.pid == 123
    assert not parsed.is_ready


@pytest.mark.parametrize("text", ["", "\n", "garbage"])
def test_a_pid_file_without_a_pid_is_none(text):
    assert parse(text) is None


def test_no_pid_file_is_no_server(tmp_path):
    assert recorded(tmp_path) is None
    assert recorded(tmp_path / "absent") is None
    assert running(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["/usr/lib/postgresql/15/bin/postgres", "-D", "/data/pgdata"], True),
        (["postgres", "-D", "/data/../data/pgdata", "-c", "port=1"], True),
        (["postgres", "-D", "/data/other"], False),
        (["postgres"], True),
        (["postgres", "-D"], True),
        (["postgres: checkpointer "], False),
        (["/usr/bin/python3", "-D", "/data/pgdata"], False),
        ([], False),
    ],
)
def test_a_process_is_told_by_its_program_and_folder(arguments, expected):
    assert is_server_of(arguments, Path("/data/pgdata")) is expected


def test_a_pid_of_another_program_is_no_server_and_is_forgotten(tmp_path):
    file = pid_file(tmp_path, os.getpid())
    assert running(tmp_path) is None
    remove_stale_pid_file(tmp_path)
    assert not file.exists()


def test_a_pid_of_a_dead_process_is_no_server_and_is_left_to_the_server_to_judge(tmp_path):
    file = pid_file(tmp_path, 2**31 - 1)
    assert running(tmp_path) is None
    remove_stale_pid_file(tmp_path)
    assert file.exists()


def test_without_proc_the_process_list_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(postmaster, "_PROC", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "ps").write_text("#!/bin/sh\necho '/opt/bin/postgres -D /data/pgdata'\n")
    (tmp_path / "ps").chmod(0o755)
    pid_file(tmp_path, 4711)
    assert running(tmp_path).pid == 4711


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="zombies are read from /proc")
def test_a_zombie_is_no_server(tmp_path):
    child = os.posix_spawn("/bin/true", ["/usr/bin/postgres"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        pid_file(tmp_path, child)
        assert running(tmp_path) is None
    finally:
        os.waitpid(child, 0)
