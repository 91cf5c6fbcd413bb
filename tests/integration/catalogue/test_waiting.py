"""Clients who wait for an asset: `completed` and the callback mean that its item is in the catalogue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from geomill.domain.states import JobStatus, ProcessingStatus
from geomill.platform.status import standing
from geomill.store import callbacks
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.catalogue.test_following import HOLD
from tests.integration.platform.conftest import ADA, Office

CALLBACK = "http://127.0.0.1:9/ended"  # nobody may call there, so nothing is sent


@asynccontextmanager
async def locked(database: str, collection_id: str) -> AsyncIterator[None]:
    async with await psycopg.AsyncConnection.connect(database) as other:
        await other.execute(HOLD, [collection_id])
        yield


async def status_of(office: Office, identifier: str) -> str:
    async with office.engine.pool.connection() as conn:
        return (await standing(conn, "dag-jobs", identifier)).status


async def callbacks_of(office: Office) -> list[str]:
    async with office.engine.pool.connection() as conn:
        await callbacks.find(conn, limit=10)
    return [row["job_id"] for row in await office.rows("SELECT job_id FROM dagapp.dag_callbacks")]


async def test_completed_and_the_callback_mean_that_the_item_is_there(office: Office, database: str) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    first = await office.published(ADA, platform_refs=refs("first"), processing_options={"item": an_item()})
    async with locked(database, first.stac_collection_id):
        accepted = await office.submit(
            ADA, platform_refs=refs("second"), processing_options={"item": an_item()}, callback_url=CALLBACK
        )
        job = await office.engine.ended(accepted.request.job_id)
        assert job.status is JobStatus.COMPLETED
        assert await status_of(office, accepted.request.request_id) == "running"
        assert await callbacks_of(office) == []
    await office.catalogued()
    assert await status_of(office, accepted.request.request_id) == "completed"
    assert await callbacks_of(office) == [job.job_id]


async def test_an_item_that_is_refused_is_not_waited_for(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    options = {"item": {**an_item(), "geometry": None}}
    accepted = await office.submit(ADA, platform_refs=refs("wrong"), processing_options=options, callback_url=CALLBACK)
    job = await office.ended(accepted.request.job_id)
    assert (await office.asset(accepted.asset.asset_id)).processing_status is ProcessingStatus.COMPLETED
    assert await status_of(office, accepted.request.request_id) == "completed"
    assert await callbacks_of(office) == [job.job_id]


async def test_a_failed_job_is_waited_for_by_nobody(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    options = {"item": an_item(), "fails": True}
    accepted = await office.submit(ADA, platform_refs=refs("failed"), processing_options=options, callback_url=CALLBACK)
    job = await office.engine.ended(accepted.request.job_id)
    assert await status_of(office, accepted.request.request_id) == "failed"
    assert await callbacks_of(office) == [job.job_id]
