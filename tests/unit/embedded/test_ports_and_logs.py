import os
import socket

from geomill.embedded import logs, ports


def test_a_port_that_is_free_is_kept():
    port = ports.free(None)
    assert ports.is_free(port)
    assert ports.free(port) == port


def test_a_port_that_is_taken_is_given_up():
    with socket.create_server((ports.LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.free(port) != port


def test_the_tail_has_the_last_lines_of_this_start_only(tmp_path):
    assert logs.tail(tmp_path) == ""
    logs.start_log(tmp_path).write_text("".join(f"start {n}\n" for n in range(50)))
    (tmp_path / "postgresql-Mon.log").write_text("FATAL\n")
    (tmp_path / "postgresql-Sun.log").write_text("of yesterday\n")
    os.utime(tmp_path / "postgresql-Sun.log", (0, 0))
    tail = logs.tail(tmp_path)
    assert tail.endswith("start 49\nFATAL\n")
    assert "start 10\n" not in tail
    assert "yesterday" not in tail


def test_each_start_begins_its_log_anew(tmp_path):
    logs.begin(tmp_path)
    logs.start_log(tmp_path).write_text("old")
    logs.begin(tmp_path)
    assert not logs.start_log(tmp_path).exists()
