"""Extracts: downloads too large for an answer, written by real jobs, and read again by GDAL, pyarrow and rasterio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
import rasterio
from httpx import Response
from rasterio.io import MemoryFile

from geomill.domain.access.principal import Role
from geomill.domain.assets.extract import CONTAINER
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.domain.objectname import Zone
from geomill.engine.maintenance.extracts import OldExtractOptions, OldExtracts
from geomill.engine.submit import enqueue
from geomill.errors import Forbidden
from geomill.platform.extracts import ExtractOffice
from geomill.sdk import Storage
from geomill.serve.downloads import desk
from geomill.serve.raster import clips
from geomill.serve.vector import downloads
from geomill.settings import ExtractSettings
from geomill.store.pool import open_pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library
from tests.integration.raster import sources
from tests.integration.serve.test_downloads import frame, layer
from tests.integration.serve.test_rasters import file_of, published, put_raster
from tests.integration.serve.zone import KEY, House

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = ExtractSettings(
    extract_max_bytes=2_000_000, extract_most=3, extract_anonymous_most=40, extract_total_bytes=300_000_000
)
PATIENCE = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(module_database: str, shelf: Storage) -> AsyncIterator[House]:
    """The internal zone of a gateway, with an orchestrator and a worker."""
    workflows = library()
    office = ExtractOffice(workflows, "dag-jobs", LIMITS)
    async with House.open(module_database, shelf, office) as open_house, open_pool(module_database, size=6) as pool:
        engine = EnginePlatform(module_database, pool, workflows, handlers_of(), shelf)
        engine.orchestrator()
        engine.worker()
        yield open_house
        await engine.shutdown()


async def order(house: House, path: str, headers: dict[str, str] | None = None, **params: Any) -> Response:
    return await house.client.post(path, params=params, headers=headers or {})


async def ended(house: House, ordered: Response, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Follow an extract as a caller does."""
    assert ordered.status_code == 202, ordered.text
    view: dict[str, Any] = ordered.json()
    assert ordered.headers["location"] == view["href"]
    until = time.monotonic() + PATIENCE
    while view["status"] in ("waiting", "running"):
        assert time.monotonic() < until, view
        await asyncio.sleep(0.1)
        answer = await house.client.get(view["href"], headers=headers or {})
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "private, no-store"
        view = answer.json()
    return view


async def content(house: House, view: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    assert view["status"] == "ready", view
    return await house.client.get(view["file_href"], headers=headers or {})


@pytest.mark.parametrize("name", ["gpkg", "parquet", "fgb", "shp", "geojson", "csv"])
async def test_a_download_beyond_its_limit_can_be_ordered_with_the_same_parameters(
    house: House, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, params = f"{await layer(house)}/download", {"f": name, "filter": "id >= 10", "bbox": "15,44,15.295,46"}
    with monkeypatch.context() as change:
        change.setattr(downloads, "MOST_ROWS", 19)
        refused = await house.client.get(path, params=params)
        assert (refused.status_code, refused.json()["code"]) == (409, "download_too_large")
        assert "POST" in refused.json()["detail"]
        view = await ended(house, await order(house, path, **params))
    file = await content(house, view)
    assert len(file.content) == view["size"]
    assert view["file_name"] in file.headers["content-disposition"]
    if name in ("gpkg", "fgb", "shp", "geojson"):
        _, shapes, values = frame(file, tmp_path, view["file_name"].rpartition(".")[2])
        assert len(shapes) == 20
        identifiers = values["id"].tolist()
    elif name == "parquet":
        (tmp_path / "a.parquet").write_bytes(file.content)
        identifiers = pq.read_table(tmp_path / "a.parquet").column("id").to_pylist()
    else:
        identifiers = [int(line.split(",")[0]) for line in file.text.splitlines()[1:]]
    assert sorted(identifiers) == list(range(10, 30))
    part = await house.client.get(view["file_href"], headers={"Range": "bytes=5-14"})
    assert (part.status_code, part.content) == (206, file.content[5:15])


@pytest.fixture(scope="module")
def picture(shelf: Storage) -> dict[str, Any]:
    noise = sources.noise((2, 900, 1000), "int16", 0, 999)
    return put_raster(shelf, sources.SyntheticRaster(noise, nodata=-1), "extracted")


async def test_a_clip_beyond_its_limit_can_be_ordered(
    house: House, shelf: Storage, picture: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = await published(house, "extracted", picture, "multispectral")
    with rasterio.open(file_of(shelf, picture)) as whole:
        everything, transform, crs = whole.read(), whole.transform, whole.crs
    west, north = transform @ (50.5, 60.5)
    east, south = transform @ (450.5, 460.5)
    params = {"bbox": f"{west},{south},{east},{north}", "bbox-crs": str(crs)}
    monkeypatch.setattr(clips, "MOST_SAMPLES", 1000)
    refused = await house.client.get(f"{start}/clip.tif", params=params)
    assert (refused.status_code, refused.json()["code"]) == (409, "download_too_large")
    view = await ended(house, await order(house, f"{start}/clip.tif", **params))
    file = await content(house, view)
    with MemoryFile(file.content) as memory, memory.open() as clip:
        assert np.array_equal(clip.read(), everything[:, 60:461, 50:451])
        assert (clip.crs, clip.nodata) == (crs, -1)
        assert clip.tags(ns="IMAGE_STRUCTURE").get("LAYOUT") == "COG"
    monkeypatch.setattr(clips, "MOST_ORDERED_SAMPLES", 1001)
    assert (await order(house, f"{start}/clip.tif", **params)).json()["code"] == "download_too_large"


async def test_an_extract_is_for_whom_the_asset_is_shown_now(house: House) -> None:
    hidden = await layer(house, clearance_state="ouo")
    asset_id = hidden.rpartition("/")[2]
    stranger = await house.key(Role.SUBMITTER, platform_id="other")
    owner = await house.key(Role.SUBMITTER, platform_id="ddh")
    for headers in ({}, stranger):
        assert (await order(house, f"{hidden}/download", headers, f="csv")).status_code == 404
    view = await ended(house, await order(house, f"{hidden}/download", owner, f="csv"), owner)
    for href in (view["href"], view["file_href"]):
        assert (await house.client.get(href, headers=owner)).status_code == 200
        assert (await house.client.get(href)).status_code == 404
        assert (await house.client.get(href, headers=stranger)).status_code == 404
        other = href.replace(asset_id, (await layer(house)).rpartition("/")[2])
        assert (await house.client.get(other)).status_code == 404
    ticket = KEY.ticket(asset_id, int(time.time()) + 60, 0)
    linked = await house.client.get(f"{view['href']}?geomill_link={ticket}")
    assert linked.json()["file_href"].endswith(f"?geomill_link={ticket}")
    assert (await house.client.get(linked.json()["file_href"])).status_code == 200


WITHDRAWALS = {
    "revoked": "withdrawn_through = 1",
    "unpublished": "deleted_at = now(), deleted_by = 'x'",
    "not public any more": "clearance_state = 'ouo'",
}


@pytest.mark.parametrize("change", WITHDRAWALS)
async def test_revoked_means_gone_for_the_file_too(house: House, change: str) -> None:
    path = await layer(house)
    view = await ended(house, await order(house, f"{path}/download", f="csv"))
    assert (await house.client.get(view["file_href"])).status_code == 200
    query = f"UPDATE app.geospatial_assets SET {WITHDRAWALS[change]} WHERE asset_id = %s"
    await house.execute(query, path.rpartition("/")[2])
    for href in (view["href"], view["file_href"]):
        assert (await house.client.get(href)).status_code == 404
    reader = await house.key(Role.READER)
    status = (await house.client.get(view["file_href"], headers=reader)).status_code
    assert status == (200 if change == "not public any more" else 404)


async def files(shelf: Storage, extract_id: str) -> list[str]:
    return [info.name.path async for info in shelf.list(Zone.SILVER, CONTAINER, f"{extract_id}/")]


def duty(house: House, shelf: Storage, **options: Any) -> OldExtracts:
    return OldExtracts(house.pool, "dag-jobs", shelf, OldExtractOptions(**options))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE app.extracts SET expires_at = now() WHERE asset_id = %s",
        "UPDATE app.geospatial_assets SET withdrawn_through = 1 WHERE asset_id = %s",
        "UPDATE app.geospatial_assets SET deleted_at = now(), deleted_by = 'x' WHERE asset_id = %s",
    ],
)
async def test_the_file_is_deleted_when_its_time_or_its_revision_is_over(
    house: House, shelf: Storage, change: str
) -> None:
    path = await layer(house)
    view = await ended(house, await order(house, f"{path}/download", f="csv"))
    await duty(house, shelf).run_once()
    assert len(await files(shelf, view["extract_id"])) == 1
    await house.execute(change, path.rpartition("/")[2])
    assert (await house.client.get(view["href"])).status_code == 404
    assert await duty(house, shelf).run_once() == 1
    assert await files(shelf, view["extract_id"]) == []
    assert await duty(house, shelf).run_once() == 0


async def test_a_job_under_way_leaves_nothing_when_its_asset_is_withdrawn(house: House, shelf: Storage) -> None:
    path = await layer(house)
    ordered = await order(house, f"{path}/download", f="csv", filter="id < 7")
    await house.execute(
        "UPDATE app.geospatial_assets SET deleted_at = now(), deleted_by = 'x' WHERE asset_id = %s",
        path.rpartition("/")[2],
    )
    await duty(house, shelf).run_once()
    until = time.monotonic() + PATIENCE
    while True:
        async with house.pool.connection() as conn:
            rows = await (
                await conn.execute(
                    "SELECT status FROM dagapp.dag_jobs WHERE input_params ->> 'extract_id' = %s"
                    " AND completed_at IS NOT NULL",
                    (ordered.json()["extract_id"],),
                )
            ).fetchall()
        if rows:
            break
        assert time.monotonic() < until
        await asyncio.sleep(0.1)
    assert await files(shelf, ordered.json()["extract_id"]) == []


async def test_a_repeated_order_is_the_same_extract_and_each_caller_has_few(house: House) -> None:
    path, other = await layer(house), await layer(house)
    first, second = await house.key(Role.SUBMITTER, platform_id="ddh"), await house.key(Role.READER)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    same = [(await order(house, f"{path}/download", first, f="csv")).json()["extract_id"] for _ in range(5)]
    assert len(set(same)) == 1
    assert (await order(house, f"{path}/download", second, f="csv")).json()["extract_id"] not in same
    for number in range(2):
        assert (await order(house, f"{other}/download", first, f="csv", filter=f"id>{number}")).status_code == 202
    refused = await order(house, f"{other}/download", first, f="gpkg")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert int(refused.headers["retry-after"]) > 0
    again = await house.key(Role.SUBMITTER, Role.READER, platform_id="ddh")  # another key of the same platform
    assert (await order(house, f"{other}/download", again, f="gpkg")).status_code == 429
    assert (await order(house, f"{other}/download", second, f="gpkg")).status_code == 202


async def test_many_orders_at_once_are_counted(house: House) -> None:
    path = await layer(house)
    key = await house.key(Role.OPERATOR)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    answers = await asyncio.gather(
        *(order(house, f"{path}/download", key, f="csv", filter=f"id>{n}") for n in range(9))
    )
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [429] * 6


async def test_all_extracts_together_have_a_limit(house: House) -> None:
    path = await layer(house)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    await house.execute(
        "INSERT INTO app.extracts (extract_id, asset_id, revision, withdrawn_through, ordered_by, file_name,"
        " media_type, work, most_bytes, job_id, expires_at)"
        " VALUES ('x', %s, 1, 0, 'somebody', 'f', 'm', '{}', 299000000, 'none', now() + interval '1 day')",
        path.rpartition("/")[2],
    )
    refused = await order(house, f"{path}/download", f="csv")
    assert (refused.status_code, "room" in refused.json()["detail"]) == (429, True)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    assert (await order(house, f"{path}/download", f="csv")).status_code == 202


@pytest.mark.slow
async def test_a_file_beyond_its_limit_is_refused_with_a_reason_and_leaves_nothing(
    house: House, shelf: Storage
) -> None:
    path = await layer(house, rows=16_000)
    reader = await house.key(Role.READER)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    view = await ended(house, await order(house, f"{path}/download", reader, f="geojson"), reader)
    assert view["status"] == "failed"
    assert "0.002 GB" in view["error"]
    assert (await house.client.get(view["href"])).json()["error"] == "the file could not be made"
    assert (await house.client.get(f"{view['href']}/file")).status_code == 409
    assert await files(shelf, view["extract_id"]) == []
    again = await order(house, f"{path}/download", reader, f="geojson")
    assert again.json()["extract_id"] != view["extract_id"]
    await ended(house, again, reader)
    await duty(house, shelf).run_once()
    assert await duty(house, shelf, failed_seconds=0).run_once() == 2


async def test_a_file_whose_index_fits_no_memory_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await layer(house)
    reader = await house.key(Role.READER)
    await house.execute("DELETE FROM app.extracts WHERE %s", True)
    monkeypatch.setattr(downloads, "MOST_INDEXED_ROWS", 49)
    views = [await ended(house, await order(house, f"{path}/download", reader, f=f), reader) for f in ("fgb", "gpkg")]
    assert [view["status"] for view in views] == ["failed", "ready"]
    assert "more than 49 features match" in views[0]["error"]


async def test_a_job_writes_only_its_own_extract(house: House) -> None:
    """Nobody starts the workflow but geomill, and a job that names another's extract gets nothing."""
    path = await layer(house)
    view = await ended(house, await order(house, f"{path}/download", f="csv"))
    message = JobQueueMessage(workflow_id="write_extract", input_params={"extract_id": view["extract_id"]})
    async with house.pool.connection() as conn:
        with pytest.raises(Forbidden):
            await enqueue(conn, library(), "dag-jobs", [message], Starter.OPERATORS)
        await enqueue(conn, library(), "dag-jobs", [message], Starter.GEOMILL)
    until = time.monotonic() + PATIENCE
    while True:
        async with house.pool.connection() as conn:
            row = await (
                await conn.execute(
                    "SELECT status, error_message FROM dagapp.dag_jobs WHERE job_id = %s AND completed_at IS NOT NULL",
                    (message.job_id,),
                )
            ).fetchone()
        if row:
            break
        assert time.monotonic() < until
        await asyncio.sleep(0.1)
    assert (row["status"], "no longer available" in row["error_message"]) == ("failed", True)


async def test_what_is_stored_and_shown_has_no_credentials(house: House) -> None:
    path = await layer(house)
    await ended(house, await order(house, f"{path}/download", f="csv"))
    async with house.pool.connection() as conn:
        rows = await (await conn.execute("SELECT work FROM app.extracts")).fetchall()
    assert rows
    assert all(
        {"url", "password", "options"}.isdisjoint(row["work"]) and house.url not in str(row["work"]) for row in rows
    )


async def test_a_server_without_an_office_takes_no_orders(
    module_database: str, shelf: Storage, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await layer(house)
    monkeypatch.setattr(House, "prepare", classmethod(_nothing))
    async with House.open(module_database, shelf) as server:
        refused = await order(server, f"{path}/download", f="csv")
        assert (refused.status_code, "gateway" in refused.json()["detail"]) == (409, True)
        monkeypatch.setattr(downloads, "MOST_ROWS", 1)
        assert desk.MOST_OPEN > 0
        assert (await server.client.get(f"{path}/download?f=csv")).status_code == 409


async def _nothing(_cls: Any, _pool: Any) -> None:
    """The database has its platforms already."""
