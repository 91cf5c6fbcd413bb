"""Where the gateway listens."""

from __future__ import annotations

import socket

import pytest

from geomill.cli.gateway import listen
from geomill.domain.addresses import is_loopback
from geomill.errors import ConflictError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_others_reach_it(host: str) -> None:
    assert not is_loopback(host)


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConflictError, match=f"port {port}.*--port"), listen("127.0.0.1", port):
            pass
