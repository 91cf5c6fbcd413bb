"""One call over TLS: the address is pinned, the certificate is still the name's."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.engine.callback import Allowance
from geomill.engine.maintenance import delivery, pinning

LOOPBACK = Allowance.of(["127.0.0.1"])

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example", "-keyout", str(key),
         "-out", str(chain)],
        check=True, capture_output=True,
    )  # fmt: skip
    return chain, key


@pytest.fixture
async def port(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    chain, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def resolve(_host: str, _port: int) -> list[Any]:
        return [pinning.ip_address("127.0.0.1")]

    monkeypatch.setattr(pinning, "_resolve", resolve)
    monkeypatch.setattr(pinning, "_certificates", lambda: ssl.create_default_context(cafile=str(chain)))
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def test_the_certificate_is_checked_against_the_name(port: int) -> None:
    assert await delivery.post(f"https://hooks.example:{port}/", b"{}", {}, LOOPBACK) == 200


async def test_a_certificate_of_another_name_is_refused(port: int) -> None:
    with pytest.raises(delivery.NotDelivered, match=r"(?i)certificate"):
        await delivery.post(f"https://other.example:{port}/", b"{}", {}, LOOPBACK)


@pytest.mark.parametrize("url", ["ftp://hooks.example/", "https:///x", "http://exa\x07mple/", "hooks.example"])
async def test_what_is_no_url_is_never_called(url: str) -> None:
    with pytest.raises(pinning.ForbiddenAddress):
        await delivery.post(url, b"{}", {}, LOOPBACK)
