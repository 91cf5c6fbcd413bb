"""The network of the chaos run loses what it is told to, and nothing else: otherwise its faults would prove nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.chaos import network
from tests.chaos.network import Network

PATIENCE = 60.0
CLIENT = """
import socket, sys
conn = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for line in sys.stdin:
    conn.sendall(line.strip().encode())
"""


@pytest.fixture
def cables() -> Iterator[Network]:
    if reason := network.why_not():
        pytest.skip(reason)
    with Network() as cables:
        yield cables


@contextmanager
def connected(cables: Network, listener: socket.socket) -> Iterator[tuple[subprocess.Popen[str], socket.socket, int]]:
    """A process in the roles' network, our end of its connection, and its port."""
    address = [cables.server, str(listener.getsockname()[1])]
    command = [*cables.inside, sys.executable, "-c", CLIENT, *address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        conn, (_, port) = listener.accept()
        with closing(conn):
            conn.settimeout(PATIENCE)
            yield process, conn, port
            process.kill()


def say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def test_one_connection_is_lost_silently_and_a_new_one_passes(cables: Network) -> None:
    with socket.create_server((cables.server, 0)) as listener:
        listener.settimeout(PATIENCE)
        with connected(cables, listener) as (process, conn, port):
            say(process, "before")
            assert conn.recv(100) == b"before"
            cables.lose([port])
            say(process, "lost")
            with connected(cables, listener) as (other, other_conn, _):
                say(other, "passes")
                assert other_conn.recv(100) == b"passes"
            conn.setblocking(False)
            with pytest.raises(BlockingIOError):
                conn.recv(100)
            conn.settimeout(PATIENCE)
            cables.heal()
            assert conn.recv(100) == b"lost"  # sent again by the kernel, which was never told
