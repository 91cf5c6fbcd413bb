"""Old uploads go; what somebody needs stays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.assets.upload import Upload
from geomill.engine.maintenance.uploads import OldUploadOptions, OldUploads
from geomill.errors import NotFoundError
from geomill.settings import UploadSettings
from geomill.storage import Storage, StorageRecipe
from geomill.store import uploads
from geomill.store.pool import Pool
from geomill.store.uploads import UploadAges
from geomill.uploads.opening import UploadOrder, open_upload
from geomill.uploads.receiving import UploadReceiver

DAY = timedelta(days=1)
ASSET = """
INSERT INTO app.geospatial_assets
    (asset_id, platform_id, platform_refs, data_type, last_request_id, blob_stem, table_stem, stac_item_id,
     stac_collection_id)
VALUES (%(asset)s, 'ddh', '{"dataset_id": 1}', 'raster', %(request)s, 'stem', 'stem', 'item', 'collection')
"""
REQUEST = """
INSERT INTO app.platform_requests
    (request_id, asset_id, revision, platform_id, platform_refs, data_type, container_name, file_names, workflow_id,
     submitted_by, job_id, status, updated_at)
VALUES (%(request)s, %(asset)s, 1, 'ddh', '{}', 'raster', %(container)s, jsonb_build_array(%(file)s::text), 'workflow',
        'somebody', 'job', %(status)s, now() - %(age)s)
"""
AGES = UploadAges(unfinished=DAY, unused=7 * DAY, used=30 * DAY)


async def bytes_of(content: bytes) -> Any:
    yield content


@dataclass
class Bronze:
    pool: Pool
    storage: Storage

    async def upload(self, content: bytes = b"abc", *, sent: int = 3) -> Upload:
        order = UploadOrder(platform_id="ddh", file_name="a.tif", created_by="x", length=len(content))
        async with self.pool.connection() as conn:
            upload = await open_upload(conn, self.storage, UploadSettings(), order)
        return await UploadReceiver(self.pool, self.storage, upload, 10**9).receive(0, bytes_of(content[:sent]))

    async def age(self, upload: Upload, days: float) -> None:
        async with self.pool.connection() as conn:
            await conn.execute(
                "UPDATE app.uploads SET updated_at = now() - %s WHERE upload_id = %s",
                (timedelta(days=days), upload.upload_id),
            )

    async def sweep(self, ages: UploadAges = AGES) -> int:
        return await OldUploads(self.pool, self.storage, OldUploadOptions(ages)).run_once()

    async def is_there(self, upload: Upload) -> bool:
        async with self.pool.connection() as conn:
            try:
                await uploads.get(conn, upload.upload_id)
            except NotFoundError:
                return False
        return True

    async def request(self, upload: Upload, status: str, days: float) -> None:
        """A request that names the file, and was last changed some days ago."""
        values = {
            "asset": f"asset-{upload.upload_id[:8]}",
            "request": f"request-{upload.upload_id[:8]}",
            "container": upload.container_name,
            "file": upload.file_name,
            "status": status,
            "age": timedelta(days=days),
        }
        async with self.pool.connection() as conn:
            await conn.execute(ASSET, values)
            await conn.execute(REQUEST, values)


@pytest.fixture
async def bronze(pool: Pool, tmp_path: Path) -> Bronze:
    return Bronze(pool, Storage(StorageRecipe.in_folder(tmp_path)))


async def test_an_unfinished_upload_goes_with_its_bytes(bronze: Bronze, tmp_path: Path) -> None:
    old, fresh = await bronze.upload(sent=1), await bronze.upload(sent=1)
    await bronze.age(old, 1.1)
    assert await bronze.sweep() == 1
    assert [await bronze.is_there(old), await bronze.is_there(fresh)] == [False, True]
    assert [file.name for file in (tmp_path / "bronze" / ".drafts").iterdir()] == [fresh.upload_id]


async def test_an_upload_under_way_stays(bronze: Bronze) -> None:
    upload = await bronze.upload(sent=1)
    await bronze.age(upload, 5)
    async with bronze.pool.connection() as conn:
        await uploads.lease(conn, upload.upload_id, "somebody")
    assert await bronze.sweep() == 0


async def test_a_file_that_nobody_named_goes(bronze: Bronze) -> None:
    upload = await bronze.upload()
    await bronze.age(upload, 6)
    assert await bronze.sweep() == 0
    await bronze.age(upload, 8)
    assert await bronze.sweep(UploadAges(DAY, None, DAY)) == 0
    assert await bronze.sweep() == 1
    assert not await bronze.storage.exists(upload.name)


@pytest.mark.parametrize(
    ("status", "days", "goes"),
    [("completed", 31, True), ("superseded", 31, True), ("completed", 29, False), ("processing", 99, False),
     ("accepted", 99, False), ("failed", 99, False)],
)  # fmt: skip
async def test_a_file_stays_while_a_request_needs_it(bronze: Bronze, status: str, days: float, goes: bool) -> None:
    upload = await bronze.upload()
    await bronze.request(upload, status, days)
    await bronze.age(upload, 100)
    assert await bronze.sweep(UploadAges(DAY, DAY, None)) == 0
    assert await bronze.sweep() == goes
    assert await bronze.storage.exists(upload.name) is not goes
