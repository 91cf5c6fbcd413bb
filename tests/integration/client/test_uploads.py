"""Uploads over a real socket: cuts at random places, two gateways, a gateway that is killed, and a foreign client."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tusclient.client import TusClient

from geomill.client import AsyncClient, Client
from geomill.client.asynchronous import uploads as client_uploads
from geomill.domain.access.principal import Role
from geomill.domain.assets.upload import UploadStatus
from geomill.errors import ChecksumMismatch, InputError, NotFoundError, UploadLocked, UploadOffset
from geomill.store.pool import Pool
from geomill.uploads import receiving
from tests.integration.client.conftest import RunningGateway
from tests.integration.storage.proxy import ProxyFault, proxied

CONTENT = random.Random(1).randbytes(700_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source" / "a.tif"
    file.parent.mkdir()
    file.write_bytes(CONTENT)
    return file


def received(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "bronze" / "ddh").rglob("*") if path.is_file()]


async def cut(gateway: RunningGateway, upload_id: str, offset: int, announced: bytes, sent: int) -> None:
    """Begin to send bytes and hang up after some of them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(
        f"PATCH /api/platform/uploads/{upload_id} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n"
        f"Authorization: Bearer {gateway.key}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n"
        f"Content-Type: application/offset+octet-stream\r\nContent-Length: {len(announced)}\r\n\r\n".encode()
        + announced[:sent]
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    await reader.read()


@pytest.mark.parametrize("seed", range(4))
async def test_random_cuts(
    gateway: RunningGateway, client: AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    choice = random.Random(seed)
    monkeypatch.setattr(receiving, "STEP_BYTES", choice.choice([10_000, 100_000, 10**9]))
    upload = await client.uploads.begin("a.tif", len(CONTENT), platform_id="ddh", sha256=DIGEST)
    for _ in range(200):
        offset = upload.received_bytes
        rest = CONTENT[offset:]
        if choice.random() < 0.7:
            await cut(gateway, upload.upload_id, offset, rest, choice.randrange(len(rest)))
        else:
            try:
                await client.uploads.send(upload.upload_id, offset, rest[: choice.randint(1, len(rest))])
            except (UploadLocked, UploadOffset):  # the gateway has only now noticed that the sender is gone
                await asyncio.sleep(0.01)
        upload = await client.uploads.get(upload.upload_id)
        assert upload.received_bytes >= offset, "bytes that were told safe are safe"
        if upload.status is UploadStatus.COMPLETE:
            break
        assert received(tmp_path) == []
    assert (upload.status, upload.sha256, upload.received_bytes) == (UploadStatus.COMPLETE, DIGEST, len(CONTENT))
    (file,) = received(tmp_path)
    assert file.read_bytes() == CONTENT


async def test_the_client_resumes_through_a_bad_network(
    gateway: RunningGateway, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_uploads, "SENT_AT_ONCE", 200_000)
    async with proxied(gateway.url) as proxy:
        proxy.faults += [ProxyFault("cut request", "^PATCH", 2), ProxyFault("cut answer", "^PATCH", 1)]
        places: list[int] = []
        async with AsyncClient(proxy.url, gateway.key) as client:
            upload = await client.upload(source, platform_id="ddh", progress=lambda done, _total: places.append(done))
        assert proxy.hit == 3
    assert (upload.status, upload.sha256) == (UploadStatus.COMPLETE, DIGEST)
    assert (places[0], places[-1]) == (0, len(CONTENT))


async def test_the_client_waits_for_a_gateway_that_restarts(
    gateway: RunningGateway, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_uploads, "SENT_AT_ONCE", 100_000)
    restarted = []

    def stop_once(done: int, _total: int) -> None:
        if done >= 300_000 and not restarted:
            restarted.append(asyncio.create_task(restart()))

    async def restart() -> None:
        await gateway.stop()
        await asyncio.sleep(0.3)
        await gateway.start()

    async with AsyncClient(gateway.url, gateway.key, tries=1) as client:
        upload = await client.upload(source, platform_id="ddh", progress=stop_once)
    await restarted[0]
    assert upload.sha256 == DIGEST


async def test_another_process_continues_what_one_began(client: AsyncClient, source: Path) -> None:
    begun = await client.uploads.begin("a.tif", len(CONTENT), platform_id="ddh", sha256=DIGEST)
    await client.uploads.send(begun.upload_id, 0, CONTENT[:1000])
    upload = await client.upload(source, platform_id="ddh")
    assert (upload.upload_id, upload.status) == (begun.upload_id, UploadStatus.COMPLETE)
    second = await client.upload(source, platform_id="ddh")
    assert second.upload_id != begun.upload_id
    named = await client.upload(source, platform_id="ddh", folder="set")
    assert (await client.upload(source, platform_id="ddh", folder="set")).upload_id == named.upload_id


async def test_a_file_that_changes_meanwhile_never_appears(
    client: AsyncClient, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_uploads, "SENT_AT_ONCE", 100_000)

    def change(done: int, _total: int) -> None:
        if done == 200_000:
            with source.open("r+b") as file:
                file.seek(400_000)
                file.write(b"changed")

    with pytest.raises(ChecksumMismatch):
        await client.upload(source, platform_id="ddh", progress=change)
    assert received(tmp_path) == []
    missing = source.with_name("missing.tif")
    with pytest.raises(InputError):
        await client.upload(missing)


async def test_gateways_take_turns(gateway: RunningGateway, client: AsyncClient) -> None:
    other = RunningGateway(gateway.make_app, gateway.key, gateway.database)
    await other.start()
    try:
        async with AsyncClient(other.url, other.key) as second:
            upload = await client.uploads.begin("a.tif", len(CONTENT), platform_id="ddh", sha256=DIGEST)
            offset = 0
            for turn in range(7):
                sender = (client, second)[turn % 2]
                offset = await sender.uploads.send(upload.upload_id, offset, CONTENT[offset : offset + 100_000])
            assert (await second.uploads.get(upload.upload_id)).sha256 == DIGEST
    finally:
        await other.stop()


async def test_a_foreign_client_of_tus(gateway: RunningGateway, client: AsyncClient, source: Path) -> None:
    """tuspy is the client of the tus project."""
    key = await gateway.key_of(Role.SUBMITTER, platform_id="ddh")

    def upload() -> str:
        peer = TusClient(f"{gateway.url}/api/platform/uploads", headers={"Authorization": f"Bearer {key}"})
        with source.open("rb") as file:
            first = peer.uploader(file_stream=file, chunk_size=150_000, metadata={"filename": "a.tif"})
            first.upload_chunk()
            again = peer.uploader(file_stream=file, chunk_size=150_000, url=first.url, upload_checksum=True)
            assert again.offset == 150_000
            again.upload()
            return str(first.url)

    url = await asyncio.to_thread(upload)
    view = await client.uploads.get(url.rpartition("/")[2])
    assert (view.status, view.sha256) == (UploadStatus.COMPLETE, DIGEST)
    assert view.created_by.startswith("key:")


async def test_the_synchronous_client(gateway: RunningGateway, source: Path) -> None:
    key = await gateway.key_of(Role.SUBMITTER, platform_id="ddh")

    def work() -> Any:
        with Client(gateway.url, key) as client:
            upload = client.upload(source)
            page = client.uploads.page(status="complete")
            client.uploads.remove(upload.upload_id)
            with pytest.raises(NotFoundError):
                client.uploads.get(upload.upload_id)
            return upload, page

    upload, page = await asyncio.to_thread(work)
    assert [entry.upload_id for entry in page.uploads] == [upload.upload_id]


class KilledGateway:
    """`geomill gateway` as a process."""

    def __init__(self, database: str, data: Path) -> None:
        self._environment = {**os.environ, "GEOMILL_DATABASE_URL": database, "GEOMILL_DATA": str(data)}
        self.url = ""

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("geomill")), "gateway", "--port", "0", env=self._environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert self._process.stdout
        lines = b""
        async for line in self._process.stdout:
            lines += line
            if match := re.search(rb"listening on (http://[\d.:]+)", line):
                self.url = match[1].decode()
                return
        raise AssertionError(lines.decode())

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await self._process.communicate()


@pytest.mark.slow
async def test_a_killed_gateway_has_what_it_told(
    gateway: RunningGateway, client: AsyncClient, tmp_path: Path, pool: Pool
) -> None:
    content = random.Random(2).randbytes(1_000_000) * 80
    upload = await client.uploads.begin(
        "a.tif", len(content), platform_id="ddh", sha256=hashlib.sha256(content).hexdigest()
    )
    killed = KilledGateway(gateway.database, tmp_path)
    await killed.start()

    async def slowly() -> AsyncIterator[bytes]:
        for begin in range(0, len(content) - 1_000_000, 1_000_000):
            yield content[begin : begin + 1_000_000]
            await asyncio.sleep(0.005)
            if begin == 70_000_000:
                await killed.kill()

    async with AsyncClient(killed.url, gateway.key, timeout=5) as doomed:
        with pytest.raises(Exception, match="gateway"):
            await doomed.uploads.send(upload.upload_id, 0, slowly())
    offset = (await client.uploads.get(upload.upload_id)).received_bytes
    assert 0 < offset <= 71_000_000
    draft = tmp_path / "bronze" / ".drafts" / upload.upload_id
    assert draft.read_bytes()[:offset] == content[:offset]
    with pytest.raises(UploadLocked):
        await client.uploads.send(upload.upload_id, offset, content[offset:])
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.uploads SET writer_until = now()")  # the lease of the dead gateway is over
    await client.uploads.send(upload.upload_id, offset, content[offset:])
    assert (await client.uploads.get(upload.upload_id)).status is UploadStatus.COMPLETE
