"""Hosts: network namespaces with an address each, on one switch whose links can be cut, lossy or slow.

The test itself is a host of the same network, on which it reaches the gateways as users do. It takes root, `ip` and
TUN devices; where one of them is missing, `why_not` says so and the faults of links are left out.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.chaos.network import run_tool
from tests.chaos.release import ROOT
from tests.chaos.switch import FINE, TUN, Weather

USERS = "users"
"""The host of the test, which is in no namespace."""
DATABASE_HOST = "database"
CLONE_NEWNET = 0x40000000


def host_name(role: str, number: int) -> str:
    return f"{role}{number}"


def why_not() -> str | None:
    """Return what this machine lacks for the test, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "ip not installed (script/setup --tests installs it)"
    if not Path(TUN).exists():
        return f"the system has no {TUN}"
    try:
        with Hosts(["probe"]):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        detail = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        return f"the system refused: {detail}"


class Hosts:
    def __init__(self, names: Sequence[str], *, seed: object = 1) -> None:
        self._names = [USERS, *names]
        self._seed = str(seed)
        self._token = secrets.token_hex(4)
        self._subnet = f"10.212.{secrets.randbelow(256)}"
        self._stack = ExitStack()
        self._switch: subprocess.Popen[str]

    def address(self, name: str) -> str:
        return f"{self._subnet}.{self._names.index(name) + 1}"

    def inside(self, name: str) -> list[str]:
        """The prefix of a command that runs on a host. The command keeps its process id."""
        return ["ip", "netns", "exec", self._namespace(name)]

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Put this thread, and the processes that it starts, on a host."""
        with (
            _descriptor("/proc/thread-self/ns/net") as own,
            _descriptor(f"/run/netns/{self._namespace(name)}") as other,
        ):
            _enter(other)
            try:
                yield
            finally:
                _enter(own)

    def change(self, name: str, weather: Weather) -> None:
        """Change the weather of a host's link. When this returns, it has changed."""
        assert self._switch.stdin
        self._switch.stdin.write(json.dumps({"address": self.address(name), **asdict(weather)}) + "\n")
        self._switch.stdin.flush()
        self._await_answer()

    @contextmanager
    def weather(self, name: str, weather: Weather) -> Iterator[None]:
        self.change(name, weather)
        try:
            yield
        finally:
            self.change(name, FINE)

    def __enter__(self) -> Hosts:
        with ExitStack() as stack:
            for name in self._names[1:]:
                run_tool("ip", "netns", "add", self._namespace(name))
                stack.callback(run_tool, "ip", "netns", "del", self._namespace(name))
            self._start_switch(stack)
            for name in self._names:
                self._connect(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_switch(self, stack: ExitStack) -> None:
        links = [f"{self.address(name)}={self._device(name)}" for name in self._names]
        command = [sys.executable, "-m", "tests.chaos.switch", self._seed, *links]
        self._switch = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(self._switch.kill)
        self._await_answer()

    def _await_answer(self) -> None:
        assert self._switch.stdout
        if not self._switch.stdout.readline():
            raise OSError("the switch has ended; its error is above")

    def _connect(self, name: str) -> None:
        """Give a host its device, whose other end is in the switch."""
        device, inside = self._device(name), []
        if name != USERS:
            run_tool("ip", "link", "set", device, "netns", self._namespace(name))
            inside = self.inside(name)
            run_tool(*inside, "ip", "link", "set", "lo", "up")
        run_tool(*inside, "ip", "addr", "add", f"{self.address(name)}/24", "dev", device)
        run_tool(*inside, "ip", "link", "set", device, "up")

    def _namespace(self, name: str) -> str:
        return f"gm{self._token}-{name}"

    def _device(self, name: str) -> str:
        return f"gm{self._token}{self._names.index(name)}"


@contextmanager
def _descriptor(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
