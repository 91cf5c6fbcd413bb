"""The links between hosts lose and delay what they are told to, and nothing else: otherwise their faults would prove
nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.chaos import hosts
from tests.chaos.hosts import USERS, Hosts
from tests.chaos.switch import Weather

PATIENCE = 60.0
ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7))
print("ready", flush=True)
while True:
    conn, _ = listener.accept()
    while data := conn.recv(100):
        conn.sendall(data)
"""
NAMES = ["left", "right"]
PACKETS = 2000


@pytest.fixture
def pair() -> Iterator[Hosts]:
    if reason := hosts.why_not():
        pytest.skip(reason)
    with Hosts(NAMES) as pair, echoing(pair, "left"), echoing(pair, "right"):
        yield pair


@contextmanager
def echoing(pair: Hosts, name: str) -> Iterator[None]:
    """Run a server on a host that sends back what it gets."""
    command = [*pair.inside(name), sys.executable, "-c", ECHO, pair.address(name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield
        process.kill()


def connected(pair: Hosts, name: str) -> socket.socket:
    return socket.create_connection((pair.address(name), 7), timeout=PATIENCE)


def answered(conn: socket.socket) -> float:
    """Return how many seconds an answer takes."""
    begun = time.monotonic()
    conn.sendall(b"word")
    assert conn.recv(100) == b"word"
    return time.monotonic() - begun


@pytest.mark.parametrize("weather", [Weather(1, 1), Weather(lost_out=1), Weather(lost_in=1)], ids=["both", "out", "in"])
def test_a_cut_link_is_silent_and_the_other_one_works(pair: Hosts, weather: Weather) -> None:
    with closing(connected(pair, "left")) as left, closing(connected(pair, "right")) as right:
        assert answered(left) < PATIENCE
        with pair.weather("left", weather):
            left.sendall(b"late")
            assert answered(right) < PATIENCE
            left.setblocking(False)
            with pytest.raises(BlockingIOError):
                left.recv(100)
        left.settimeout(PATIENCE)
        assert left.recv(100) == b"late"  # the kernel, which was never told, has sent it again


@pytest.mark.parametrize(("lost", "arrives"), [("lost_out", True), ("lost_in", False)])
def test_one_direction_is_cut_and_the_other_one_passes(pair: Hosts, lost: str, arrives: bool) -> None:
    with pair.entered("left"):
        inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        inside.bind((pair.address("left"), 9))
        inside.settimeout(PATIENCE if arrives else 1.0)
        with pair.weather("left", Weather(**{lost: 1.0})):
            sender.sendto(b"word", (pair.address("left"), 9))
            if arrives:
                assert inside.recv(100) == b"word"
            else:
                with pytest.raises(TimeoutError):
                    inside.recv(100)


def test_a_slow_link_adds_its_delay_both_ways(pair: Hosts) -> None:
    with closing(connected(pair, "left")) as left, closing(connected(pair, "right")) as right:
        with pair.weather("left", Weather(delay_seconds=0.3)):
            assert answered(left) >= 0.6
        quickest = min(answered(right) for _ in range(5))
        assert quickest < 0.3


def test_a_lossy_link_loses_its_share(pair: Hosts) -> None:
    with pair.entered("left"):
        inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, pair.weather("left", Weather(lost_in=0.2)):
        inside.bind((pair.address("left"), 9))
        inside.settimeout(2.0)
        arrived = 0
        for _ in range(PACKETS // 50):
            for _ in range(50):  # few enough for any buffer
                sender.sendto(b"word", (pair.address("left"), 9))
            arrived += _arrived(inside)
        assert 0.75 * PACKETS < arrived < 0.85 * PACKETS


def _arrived(inside: socket.socket) -> int:
    """Count what arrives until nothing has for a while."""
    count = 0
    inside.settimeout(0.05)
    try:
        while inside.recv(100):
            count += 1
    except TimeoutError:
        return count
    return count


def test_the_network_is_gone_afterwards() -> None:
    if reason := hosts.why_not():
        pytest.skip(reason)
    with Hosts(["only"]) as network:
        address = network.address(USERS)
        assert address in _addresses()
    assert address not in _addresses()


def _addresses() -> str:
    return subprocess.run(["ip", "addr"], check=True, capture_output=True, text=True).stdout
