"""The platform on many hosts: PostgreSQL, each role and the external server have an address and a link of their own.

The zones are folders of the machine, which all hosts see: no link leads to them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import httpx

from geomill.cli.private import EXTERNAL_DATABASE
from tests.chaos.hosts import DATABASE_HOST, USERS, Hosts, host_name
from tests.chaos.platform import ROLES, START_SECONDS, ChaosPlatform


@dataclass
class SpreadPlatform(ChaosPlatform):
    gateways: int = 1
    servers: int = 1

    def _open_network(self, stack: ExitStack) -> None:
        self.missing["network"] = "each role is on a host of its own; the faults of links take the place of this one"
        counts = (self.orchestrators, self.workers, self.gateways, self.servers)
        names = [host_name(role, n) for role, count in zip(ROLES, counts, strict=True) for n in range(count)]
        self.hosts = stack.enter_context(Hosts([DATABASE_HOST, *names]))

    def _start_server(self, stack: ExitStack) -> None:
        super()._start_server(stack)
        self.external_url = self._cluster.url(EXTERNAL_DATABASE)
        self.settings = {**self.settings, "GEOMILL_EXTERNAL_DATABASE_URL": self._roles_url(EXTERNAL_DATABASE)}

    @property
    def _hosts(self) -> Hosts:
        assert self.hosts
        return self.hosts

    @property
    def server_address(self) -> str:
        return self._hosts.address(DATABASE_HOST)

    @property
    def bus_address(self) -> str:
        return self._hosts.address(USERS)

    def role_address(self, role: str, number: int) -> str:
        return self._hosts.address(host_name(role, number))

    def _inside(self, role: str, number: int) -> list[str]:
        return self._hosts.inside(host_name(role, number))

    def start_postgres(self) -> None:
        with self._hosts.entered(DATABASE_HOST):
            super().start_postgres()

    def wait_for_roles(self) -> None:
        super().wait_for_roles()
        for number in range(self.servers):
            with httpx.Client(base_url=self.role_url("serve", number), timeout=START_SECONDS) as client:
                self._wait_for_answer(client, "/stac/collections")
