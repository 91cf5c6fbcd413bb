"""The client against a gateway with an engine behind it."""

from __future__ import annotations

import asyncio

import pytest

from geomill.client import AsyncClient, Client
from geomill.contract.jobs import JobSubmission, Progress
from geomill.contract.submissions import PlatformSubmission
from geomill.domain.access.principal import Role
from geomill.domain.assets.asset import DataType
from geomill.errors import (
    AssetExists,
    Forbidden,
    InputError,
    InputsError,
    NotFoundError,
    RevisionChanged,
    Unauthenticated,
    UnavailableError,
)
from tests.integration.client.conftest import RunningGateway

REFS = {"dataset_id": "floods", "resource_id": "jakarta", "version_id": "v1"}


def submission(**changes: object) -> PlatformSubmission:
    fields = {
        "platform_refs": REFS,
        "data_type": DataType.RASTER,
        "container_name": "uploads",
        "file_name": "a.tif",
        "workflow_id": "publish_file",
    }
    return PlatformSubmission.model_validate({**fields, **changes})


async def test_an_asset_is_submitted_followed_and_decided_upon(client: AsyncClient) -> None:
    rehearsal = await client.assets.submit(submission(), dry_run=True)
    assert rehearsal.dry_run
    assert (await client.assets.page()).assets == []
    accepted = await client.assets.submit(submission())
    looks: list[str] = []
    status = await client.assets.wait(accepted.request_id, on_progress=lambda look: looks.append(look.status))
    assert (status.status, status.asset_id) == ("completed", accepted.asset_id)
    assert looks[-1] == "completed"
    with pytest.raises(AssetExists):
        await client.assets.submit(submission())
    with pytest.raises(RevisionChanged):
        await client.assets.approve(accepted.asset_id, "ouo", expected_revision=7)
    decision = await client.assets.approve(accepted.job_id, "ouo", expected_revision=1)
    assert (decision.approval_state, decision.clearance_state) == ("approved", "ouo")
    asset = await client.assets.get(accepted.asset_id)
    assert "approved" in [entry.decision for entry in asset.audit]
    assert (await client.assets.revoke(accepted.request_id, "a test")).approval_state == "rejected"


async def test_a_job_is_run_and_its_progress_is_told(client: AsyncClient) -> None:
    job = await client.jobs.run("hello_world", name="Ada")
    assert (job.status, job.result) == ("completed", {"message": "Hello, Ada!"})
    accepted = await client.jobs.submit(JobSubmission(workflow_id="hello_world", idempotency_key="once"))
    seen: list[Progress] = []
    await client.jobs.wait(accepted.job_id, on_progress=seen.append)
    assert seen[-1].fraction == 1.0
    again = await client.jobs.submit(JobSubmission(workflow_id="hello_world", idempotency_key="once"))
    assert again.job_id == accepted.job_id
    assert {summary.job_id for summary in (await client.jobs.page(limit=10)).jobs} == {job.job_id, accepted.job_id}
    assert (await client.jobs.events(job.job_id)).events[-1].event_type == "job_completed"


async def test_errors_are_those_of_the_platform(client: AsyncClient, gateway: RunningGateway) -> None:
    with pytest.raises(NotFoundError):
        await client.jobs.get("absent")
    with pytest.raises(NotFoundError):
        await client.jobs.get("../assets")
    with pytest.raises(InputsError) as refusal:
        await client.jobs.run("hello_world", nam="Ada")
    assert refusal.value.problems[0].where == "nam"
    with pytest.raises(InputError):
        await client.jobs.page(status="no state")
    async with AsyncClient(gateway.url, "gm_wrong") as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.jobs.page()
    async with AsyncClient(gateway.url, await gateway.key_of(Role.READER)) as reader:
        with pytest.raises(Forbidden):
            await reader.jobs.run("hello_world")


async def test_the_synchronous_client_does_the_same(gateway: RunningGateway) -> None:
    def work() -> list[str]:
        with Client(gateway.url, gateway.key) as client:
            job = client.jobs.run("hello_world", name="Ada")
            status = client.assets.wait(client.assets.submit(submission()).request_id)
            with pytest.raises(NotFoundError):
                client.jobs.get("absent")
            return [job.status, status.status, *(event.event for event in client.jobs.follow(job.job_id))]

    job_status, asset_status, *events = await asyncio.to_thread(work)
    assert (job_status, asset_status) == ("completed", "completed")
    assert events[-1] == "end"


async def test_a_stream_survives_a_restart_of_the_gateway(gateway: RunningGateway) -> None:
    async with AsyncClient(gateway.url, gateway.key) as client:
        accepted = await client.jobs.submit(JobSubmission(workflow_id="slow", input_params={"seconds": 2}))
        identifiers: list[str] = []
        restarted = False
        async for event in client.jobs.follow(accepted.job_id):
            if event.event == "event":
                identifiers.append(event.id)
            if event.event == "progress" and not restarted:
                restarted = True
                await gateway.stop()
                await gateway.start()
        assert event.event == "end"
        listed = (await client.jobs.events(accepted.job_id)).events
    assert restarted
    assert identifiers == [str(entry.event_id) for entry in listed]  # nothing missed, nothing twice


async def test_a_gateway_that_is_away_for_a_moment_costs_no_read(gateway: RunningGateway) -> None:
    async with AsyncClient(gateway.url, gateway.key, tries=6) as client:
        await gateway.stop()
        page = asyncio.create_task(client.jobs.page())
        await asyncio.sleep(0.1)
        await gateway.start()
        assert (await page).jobs == []


async def test_a_gateway_that_stays_away_is_said(gateway: RunningGateway) -> None:
    await gateway.stop()
    async with AsyncClient(gateway.url, gateway.key, tries=1) as client:
        with pytest.raises(UnavailableError, match="no gateway answers at"):
            await client.jobs.page()
