"""A store that is too busy, silent, or breaks off: tried again for a while, then a clear error; nothing half done."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import NotFoundError, StorageDenied, StorageUnavailable, UnavailableError
from geomill.storage import Storage, StorageRecipe
from geomill.storage.connection_string import EMULATOR_KEY
from geomill.storage.transfer import PART
from tests.integration.storage.conftest import azure_recipe, bronze, recipe_of, s3_recipe, silver
from tests.integration.storage.proxy import Kind, Proxy, ProxyFault, proxied
from tests.integration.storage.servers import uploads_under_way

CONTENT = random.Random(2).randbytes(PART + 1_000_000)
KINDS: list[Kind] = ["busy", "refuse", "cut request", "cut answer", "hang"]


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Connections are cut on purpose, and a loop that ends just then complains of the rest."""


@dataclass
class Behind:
    """A store behind a proxy: the way through it, with little patience, and the way around it."""

    proxy: Proxy
    storage: Storage
    direct: Storage

    @property
    def impatient(self) -> Storage:
        return Storage(replace(self.storage.recipe, retry_seconds=0.5))


@pytest.fixture(params=["azure", "s3"])
async def behind(request: pytest.FixtureRequest) -> AsyncIterator[Behind]:
    endpoint: str = request.getfixturevalue(f"{request.param}_endpoint")
    make = azure_recipe if request.param == "azure" else s3_recipe
    prefix = f"{uuid4().hex}/"
    async with proxied(endpoint) as proxy:
        recipe = replace(make(proxy.url, prefix), timeout_seconds=2, retry_seconds=15)
        yield Behind(proxy, Storage(recipe), Storage(make(endpoint, prefix)))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large.bin"
    file.write_bytes(CONTENT)
    return file


async def test_an_upload_outlives_faults(behind: Behind, large: Path) -> None:
    behind.proxy.faults = [ProxyFault(kind, "^(PUT|POST)") for kind in KINDS]
    stored = await behind.storage.put_file(silver("x"), large)
    assert behind.proxy.hit == len(KINDS)
    assert stored.sha256 == sha256(CONTENT).hexdigest()
    assert await behind.direct.read(silver("x")) == CONTENT


async def test_a_download_outlives_faults(behind: Behind, large: Path) -> None:
    await behind.direct.put_file(silver("x"), large)
    behind.proxy.faults = [ProxyFault(kind, "^(GET|HEAD)") for kind in KINDS]
    target = large.with_name("back")
    stored = await behind.storage.get_file(silver("x"), target)
    assert behind.proxy.hit == len(KINDS)
    assert stored.sha256 == sha256(CONTENT).hexdigest()
    assert await asyncio.to_thread(target.read_bytes) == CONTENT


async def test_listing_and_deleting_outlive_faults(behind: Behind) -> None:
    await behind.direct.put_bytes(silver("a/1"), b"")
    behind.proxy.faults = [ProxyFault("busy", times=2), ProxyFault("refuse", times=2)]
    assert await behind.storage.delete_prefix(Zone.SILVER, "rasters", "a") == 1
    assert behind.proxy.hit == 4
    assert not await behind.direct.exists(silver("a/1"))


@pytest.mark.parametrize("kind", ["busy", "refuse", "hang"])
async def test_a_store_that_stays_away_is_unavailable_within_its_time(
    behind: Behind, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    storage = behind.impatient
    behind.proxy.faults = [ProxyFault(kind, times=10_000)]
    begun = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        await storage.put_bytes(silver("a/x.tif"), b"1")
    assert time.monotonic() - begun < 6
    assert isinstance(caught.value, StorageUnavailable)
    assert caught.value.code == "storage_unavailable"
    assert storage.recipe.zones["silver"] not in str(caught.value)
    assert storage.recipe.zones["silver"] in caplog.text
    assert "'silver/rasters/a/x.tif'" in str(caught.value)
    assert ("503" in str(caught.value)) == (kind == "busy")
    assert caught.value.__cause__ is None


async def test_an_upload_that_fails_half_way_is_taken_back(s3_endpoint: str, behind: Behind, large: Path) -> None:
    behind.proxy.faults = [ProxyFault("busy", "^PUT .*(partNumber=2|comp=block&)", times=10_000)]
    with pytest.raises(StorageUnavailable, match="it answered 503"):
        await behind.impatient.put_file(silver("x"), large)
    assert not await behind.direct.exists(silver("x"))
    prefix = behind.direct.recipe.zones["silver"].removeprefix("s3://geo-data/")
    assert uploads_under_way(s3_endpoint, "geo-data", prefix) == 0


async def test_an_upload_that_is_cancelled_is_taken_back(s3_endpoint: str, large: Path) -> None:
    storage = Storage(s3_recipe(s3_endpoint, "cancelled/"))
    begun = asyncio.Event()
    upload = asyncio.create_task(storage.put_file(silver("x"), large, progress=lambda *_: begun.set()))
    await begun.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert uploads_under_way(s3_endpoint, "geo-data", "cancelled/") == 0


async def test_a_download_that_fails_goes_on_later(behind: Behind, large: Path) -> None:
    await behind.direct.put_file(silver("x"), large)
    target, progress = large.with_name("back"), list[int]()

    def fail_from_now_on(done: int, _: int) -> None:
        if done:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        await behind.direct.get_file(silver("x"), target, progress=fail_from_now_on)
    behind.proxy.faults = [ProxyFault("busy", "^GET", times=10_000)]
    with pytest.raises(StorageUnavailable):
        await behind.impatient.get_file(silver("x"), target)
    behind.proxy.faults = []
    stored = await behind.storage.get_file(silver("x"), target, progress=lambda done, _: progress.append(done))
    assert progress == [PART, len(CONTENT)]
    assert stored.sha256 == sha256(CONTENT).hexdigest()


async def test_a_server_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recipe = replace(s3_recipe("http://127.0.0.1:9"), timeout_seconds=0.5, retry_seconds=0.5)
    with pytest.raises(StorageUnavailable, match="'bronze/rasters/x'") as caught:
        await Storage(recipe).stat(bronze("x"))
    assert "geo-data" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
    assert "s3://geo-data/bronze" in caplog.text


async def test_wrong_credentials_are_denied_and_not_shown(azure_endpoint: str) -> None:
    recipe = azure_recipe(azure_endpoint)
    wrong = recipe.azure.connection_strings[0].replace(EMULATOR_KEY, "c2VjcmV0c2VjcmV0")
    storage = Storage(replace(recipe, azure=replace(recipe.azure, connection_strings=(wrong,))))
    for work in (storage.stat(bronze("x")), storage.put_bytes(bronze("x"), b"1"), storage.exists(bronze("x"))):
        with pytest.raises(StorageDenied, match="check the credentials") as caught:
            await work
        assert "c2VjcmV0" not in str(caught.value)
        assert "Signature" not in str(caught.value)


@pytest.mark.parametrize("kind", ["azure", "s3"])
async def test_a_container_or_bucket_that_is_not_there_is_named(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    recipe: StorageRecipe = recipe_of(kind, request, tmp_path)
    if kind == "s3":
        recipe = replace(recipe, zones={"bronze": "s3://no-bucket"})
    storage = Storage(recipe)
    with pytest.raises(NotFoundError, match="there is no container 'nowhere' in"):
        await storage.put_bytes(ObjectName(Zone.BRONZE, "nowhere", "x"), b"1")
    with pytest.raises(NotFoundError, match="there is no container 'nowhere' in"):
        await anext(storage.list(Zone.BRONZE, "nowhere"))
