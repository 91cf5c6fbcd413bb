"""A network of the roles' own, so that packets between them and PostgreSQL can be lost without a word.

The roles live in a network namespace and reach the server over a pair of virtual cables. It takes root, `ip` and
`nft`; where one of them is missing, `why_not` says so and faults of the network are left out.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

NETWORKS = "10.212.0.0/15"
"""The addresses of all networks of tests."""
TABLE = "chaos"


def why_not() -> str | None:
    """Return what this machine lacks for the test, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if missing := [tool for tool in ("ip", "nft") if not shutil.which(tool)]:
        return f"{' and '.join(missing)} not installed (script/setup --tests installs them)"
    try:
        with Network() as network:
            network.lose([1])
    except subprocess.CalledProcessError as error:
        return f"the system refused: {error.stderr.decode(errors='replace').strip()}"
    return None


def _free_subnet() -> str:
    return f"10.213.{secrets.randbelow(256)}.{secrets.randbelow(63) * 4}"


@dataclass
class Network:
    name: str = field(default_factory=lambda: f"gm{secrets.token_hex(4)}")
    _base: str = field(default_factory=_free_subnet)

    @property
    def server(self) -> str:
        return self._address(1)

    @property
    def roles(self) -> str:
        return self._address(2)

    @property
    def inside(self) -> list[str]:
        """The prefix of a command that runs in the roles' network. The command keeps its process id."""
        return ["ip", "netns", "exec", self.name]

    def __enter__(self) -> Network:
        outer, inner = f"{self.name}o", f"{self.name}i"
        run_tool("ip", "netns", "add", self.name)
        try:
            run_tool("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", self.name)
            run_tool("ip", "addr", "add", f"{self.server}/30", "dev", outer)
            run_tool("ip", "link", "set", outer, "up")
            run_tool(*self.inside, "ip", "addr", "add", f"{self.roles}/30", "dev", inner)
            run_tool(*self.inside, "ip", "link", "set", inner, "up")
            run_tool(*self.inside, "ip", "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        run_tool("ip", "netns", "del", self.name)

    def lose(self, ports: Sequence[int]) -> None:
        """Drop every packet of these connections, both ways, and of no other."""
        every = "{ " + ", ".join(map(str, ports)) + " }"
        self._rules(f"tcp sport {every} drop", f"tcp dport {every} drop")

    def lose_everything(self, port: int) -> None:
        """Drop whatever goes to or comes from the server's port, new connections too."""
        self._rules(f"tcp dport {port} drop", f"tcp sport {port} drop")

    def admit(self, inward: Collection[int], outward: Collection[int]) -> None:
        """Drop every packet but those of connections that come in to, or go out to, these ports."""
        replies = "ct state established,related accept"
        self._rules(
            f'oif "lo" accept; {replies}; {_to(outward)}drop',
            f'iif "lo" accept; {replies}; {_to(inward)}drop',
        )

    def heal(self) -> None:
        run_tool(*self.inside, "nft", "delete", "table", "inet", TABLE)

    def _rules(self, outgoing: str, incoming: str) -> None:
        text = (
            f"table inet {TABLE} {{\n"
            f"  chain out {{ type filter hook output priority 0; {outgoing}; }}\n"
            f"  chain in {{ type filter hook input priority 0; {incoming}; }}\n"
            "}\n"
        )
        run_tool(*self.inside, "nft", "-f", "-", text=text)

    def _address(self, number: int) -> str:
        head, last = self._base.rsplit(".", 1)
        return f"{head}.{int(last) + number}"


def _to(ports: Collection[int]) -> str:
    return f"th dport {{ {', '.join(map(str, sorted(ports)))} }} accept; " if ports else ""


def run_tool(*command: str, text: str = "") -> None:
    subprocess.run(command, check=True, capture_output=True, input=text.encode())
