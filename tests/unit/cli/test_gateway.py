"""Who may reach the gateway."""

from __future__ import annotations

import socket

import pytest

from geomill.cli.gateway import listen, require_private
from geomill.errors import ConflictError, SettingsError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_only(host: str) -> None:
    require_private(host, allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_others_are_refused_with_the_reason(host: str) -> None:
    with pytest.raises(SettingsError, match=r"asks for no key.*--allow-remote"):
        require_private(host, allow_remote=False)
    require_private(host, allow_remote=True)


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConflictError, match=f"port {port}.*--port"), listen("127.0.0.1", port):
            pass
