"""Starts the peer of the Service Bus client, or leads to a real namespace.

`TEST_SERVICE_BUS` may hold the connection string of a real namespace or of Microsoft's emulator, with the queues that
README.md names. Then no peer is started, and tests that steer the peer are skipped.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from geomill.queues.servicebus import BusOptions

PEER = Path(__file__).with_name("peer.py")
PYTHON = "/usr/bin/python3"
REAL = os.environ.get("TEST_SERVICE_BUS")
LEFT_OPEN = "ignore:.*(StreamWriter|SelectorTransport|socket.socket).*:pytest.PytestUnraisableExceptionWarning"
"""The library of Azure leaves connections that broke to the garbage collector."""
RUN = os.urandom(8).hex()
NO_PROTON = "the peer needs python3-qpid-proton, which script/setup --tests installs"


@dataclass
class RunningPeer:
    process: subprocess.Popen[str]
    port: int
    host: str = "127.0.0.1"

    @property
    def options(self) -> BusOptions:
        endpoint = f"Endpoint=sb://{self.host}:{self.port};SharedAccessKeyName=tests;SharedAccessKey=c2VjcmV0"
        return BusOptions(connection_string=f"{endpoint};UseDevelopmentEmulator=true;")

    def tell(self, *words: object) -> dict[str, Any]:
        """Give a command, and return the answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer


def own(text: str) -> str:
    """Return a message id that no other test and no earlier run has: Service Bus remembers ids for minutes."""
    test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]
    return f"{crc32(f'{RUN} {test}'.encode()):08x} {text}"


def has_proton() -> bool:
    if not shutil.which(PYTHON):
        return False
    return subprocess.run([PYTHON, "-c", "import proton"], capture_output=True, check=False).returncode == 0


def collect_quickly() -> None:
    """Leave what is there now out of later collections, which a large test process would spend seconds on."""
    gc.collect()
    gc.freeze()


@contextmanager
def running_peer(*arguments: str, port: int | None = None, host: str = "127.0.0.1") -> Iterator[RunningPeer]:
    if not has_proton():
        pytest.skip(NO_PROTON)
    with only_one(port):
        yield from _running(port or free_port(), host, arguments)


@contextmanager
def only_one(port: int | None) -> Iterator[None]:
    """Let one test process after the other use a port that cannot be chosen."""
    if port is None:
        yield
        return
    with (Path(tempfile.gettempdir()) / f"geomill-tests-{port}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _running(port: int, host: str, arguments: tuple[str, ...]) -> Iterator[RunningPeer]:
    command = [PYTHON, str(PEER), "--listen", f"{host}:{port}", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        assert "listening" in process.stdout.readline()
        try:
            yield RunningPeer(process, port, host)
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
