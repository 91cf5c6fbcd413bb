"""Uploads into each kind of store, in steps, with senders that break off."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.errors import ChecksumMismatch, StorageUnavailable
from geomill.settings import UploadSettings
from geomill.storage import Storage
from geomill.storage.drafts import PieceWriter
from geomill.store import uploads
from geomill.store.pool import Pool
from geomill.uploads import receiving
from geomill.uploads.opening import UploadOrder, open_upload
from geomill.uploads.receiving import UploadReceiver
from geomill.uploads.removing import remove_upload
from tests.integration.storage.conftest import KINDS, azure_recipe, recipe_of
from tests.integration.storage.servers import make_container

CONTENT = random.Random(3).randbytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(params=KINDS)
def zones(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "azure":
        make_container(request.getfixturevalue("azure_endpoint"), "ddh")
    return Storage(recipe_of(request.param, request, tmp_path))


async def opened(pool: Pool, storage: Storage, sha256: str = DIGEST, platform_id: str = "ddh") -> Upload:
    order = UploadOrder(platform_id=platform_id, file_name="a.tif", created_by="x", length=len(CONTENT), sha256=sha256)
    async with pool.connection() as conn:
        return await open_upload(conn, storage, UploadSettings(), order)


async def pieces(content: bytes, size: int = 7_000) -> AsyncIterator[bytes]:
    for begin in range(0, len(content), size):
        yield content[begin : begin + size]


async def names(storage: Storage, upload: Upload) -> list[str]:
    return [info.name.path async for info in storage.list(upload.name.zone, upload.container_name)]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "STEP_BYTES", 40_000)
    monkeypatch.setattr(PieceWriter, "at_once", 20_000)


@pytest.mark.usefixtures("small_steps")
async def test_a_file_arrives_in_pieces(zones: Storage, pool: Pool) -> None:
    upload = await opened(pool, zones)
    choice = random.Random(4)
    while upload.status is UploadStatus.RECEIVING:
        end = upload.received_bytes + choice.randint(1, 150_000)
        receiver = UploadReceiver(pool, zones, upload, 10**9)
        upload = await receiver.receive(upload.received_bytes, pieces(CONTENT[upload.received_bytes : end]))
    assert (upload.sha256, await zones.read(upload.name)) == (DIGEST, CONTENT)
    assert await names(zones, upload) == [upload.file_name], "nothing else is left"
    async with pool.connection() as conn:
        assert await uploads.parts(conn, upload.upload_id) == []
    await remove_upload(pool, zones, upload)
    assert await names(zones, upload) == []


@pytest.mark.usefixtures("small_steps")
async def test_a_wrong_file_leaves_nothing(zones: Storage, pool: Pool) -> None:
    upload = await opened(pool, zones, sha256="0" * 64)
    with pytest.raises(ChecksumMismatch):
        await UploadReceiver(pool, zones, upload, 10**9).receive(0, pieces(CONTENT))
    assert await names(zones, upload) == []
    unfinished = await opened(pool, zones)
    await UploadReceiver(pool, zones, unfinished, 10**9).receive(0, pieces(CONTENT[:50_000]))
    await remove_upload(pool, zones, unfinished)
    assert await names(zones, unfinished) == []


async def test_a_missing_container_is_told(azure_endpoint: str, pool: Pool) -> None:
    storage = Storage(azure_recipe(azure_endpoint))
    upload = await opened(pool, storage, platform_id="arcgis")
    with pytest.raises(StorageUnavailable, match="ask an administrator"):
        await UploadReceiver(pool, storage, upload, 10**9).receive(0, pieces(CONTENT))
