"""Rasters that name no workflow go to one by their size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from geomill.domain.engine.starting import Starter
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import ConflictError, InputsError
from geomill.platform.desk import SizeRoute
from geomill.store import platforms
from tests.integration.platform.conftest import TIFF, Office

LARGE = "process_large_raster"


@pytest.fixture
async def routed(office: Office) -> Office:
    """The source of the office has as many bytes as make it large."""
    office.desk = replace(office.desk, large_rasters=SizeRoute(LARGE, len(TIFF)))
    await office.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "small.tif"), TIFF[:-1])
    return office


async def test_a_large_file_goes_to_the_workflow_for_large_rasters(routed: Office) -> None:
    large = await routed.submit(starter=Starter.PARTNERS)
    assert (large.request.workflow_id, large.message and large.message.workflow_id) == (LARGE, LARGE)


async def test_a_small_file_and_a_named_workflow_do_not(routed: Office) -> None:
    assert (await routed.submit(file_names=["small.tif"])).request.workflow_id == "publish"
    named = await routed.submit(workflow_id="publish", overwrite=True)
    assert named.request.workflow_id == "publish"


async def test_several_files_go_to_the_usual_workflow(routed: Office) -> None:
    with pytest.raises(InputsError, match="'publish' takes one file"):
        await routed.submit(file_names=["a.tif", "small.tif"])


async def test_a_platform_that_may_not_start_it_keeps_its_own(routed: Office) -> None:
    async with routed.engine.pool.connection() as conn:
        changed = (await platforms.get(conn, "ddh")).evolve(workflows=["publish"])
        await platforms.update(conn, changed.model_dump())
    assert (await routed.submit(starter=Starter.PARTNERS)).request.workflow_id == "publish"


async def test_an_idempotency_key_finds_its_request_whatever_its_size_is_now(routed: Office) -> None:
    first = await routed.submit(idempotency_key="k")
    await routed.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF[:-1])
    again = await routed.submit(idempotency_key="k")
    assert again.request.request_id == first.request.request_id
    with pytest.raises(ConflictError):
        await routed.submit(idempotency_key="k", workflow_id="publish")
