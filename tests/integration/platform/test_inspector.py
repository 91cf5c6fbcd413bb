"""A partner's file cannot hold up, fill or crash the process that accepts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import NotFoundError, TooManyRequests
from geomill.platform import inspector as inspectors
from geomill.platform.inspector import Inspector
from geomill.sdk import Storage
from geomill.sdk.testing import folder_storage
from geomill.settings import InspectionSettings
from tests.integration.storage.conftest import s3_recipe
from tests.integration.storage.servers import make_bucket, moto
from tests.integration.vector import sources

NAME = ObjectName(Zone.BRONZE, sources.CONTAINER, "a.geojson")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = folder_storage(tmp_path)
    sources.put(storage, "a.geojson", sources.geojson(*sources.squares(3)))
    return storage


def leftovers(storage: Storage) -> list[Path]:
    return list((Path(storage.recipe.data) / "scratch").glob("geomill-inspect-*"))


async def test_one_process_looks_into_many_files(storage: Storage) -> None:
    inspector = Inspector(storage, InspectionSettings())
    async with inspector.running():
        first = await inspector.inspect("ddh", NAME, None, {})
        pids = inspector._children.pids
        second = await inspector.inspect("ddh", NAME, None, {"id_column": "nothing"})
        assert inspector._children.pids == pids
        with pytest.raises(NotFoundError):
            await inspector.inspect("ddh", ObjectName(Zone.BRONZE, sources.CONTAINER, "none.gpkg"), None, {})
    assert (first.acceptable, second.acceptable) == (True, False)
    assert first.layers[0].rows == 3
    assert leftovers(storage) == []


async def test_a_look_that_takes_too_long_is_given_up(storage: Storage) -> None:
    inspector = Inspector(storage, InspectionSettings(inspect_seconds=0.001))
    async with inspector.running():
        inspection = await inspector.inspect("ddh", NAME, None, {})
    assert [problem.code for problem in inspection.problems] == ["too_slow"]
    assert (inspection.acceptable, inspection.complete, inspection.size_bytes > 0) == (True, False, True)
    assert leftovers(storage) == []


async def test_a_look_that_takes_too_much_memory_is_given_up(storage: Storage) -> None:
    place = "<Placemark><description>x</description><Point><coordinates>1,2</coordinates></Point></Placemark>"
    kml = f"<kml xmlns='http://www.opengis.net/kml/2.2'><Document>{place * 150_000}</Document></kml>"
    sources.put(storage, "a.kml", kml.encode())
    inspector = Inspector(storage, InspectionSettings.model_construct(inspect_memory_mb=150))
    async with inspector.running():
        inspection = await inspector.inspect("ddh", ObjectName(Zone.BRONZE, sources.CONTAINER, "a.kml"), None, {})
        again = await inspector.inspect("ddh", NAME, None, {})
    assert [problem.code for problem in inspection.problems] == ["too_heavy"]
    assert again.layers[0].rows == 3
    assert leftovers(storage) == []


async def test_a_platform_waits_for_its_own_look_only(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspectors, "MOST_WAITING", 2)
    inspector = Inspector(storage, InspectionSettings())
    async with inspector._turn("one"):
        queued = asyncio.create_task(inspector.inspect("one", NAME, None, {}))
        await asyncio.sleep(0.05)
        with pytest.raises(TooManyRequests):
            await inspector.inspect("two", NAME, None, {})
        assert not queued.done()
        queued.cancel()
    await asyncio.gather(queued, return_exceptions=True)
    async with inspector.running(), inspector._turn("one"):
        assert (await inspector.inspect("two", NAME, None, {})).acceptable


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Storage]:
    with moto(tmp_path) as endpoint:
        make_bucket(endpoint, "geo-data")
        yield Storage(s3_recipe(endpoint, f"{uuid4().hex[:8]}/"))


async def test_a_file_in_a_remote_store_is_fetched_only_if_it_is_small(remote: Storage) -> None:
    large = ObjectName(Zone.BRONZE, sources.CONTAINER, "large.geojson")
    await remote.put_bytes(NAME, sources.geojson(*sources.squares(3)))
    await remote.put_bytes(large, sources.geojson(*sources.squares(20_000)))
    inspector = Inspector(remote, InspectionSettings(inspect_copy_mb=1))
    async with inspector.running():
        small, left_out = [await inspector.inspect("ddh", name, None, {}) for name in (NAME, large)]
    assert small.layers[0].rows == 3
    assert (left_out.acceptable, left_out.complete, left_out.layers) == (True, False, [])
    assert [problem.code for problem in left_out.problems] == ["not_inspected"]
