"""A newer release migrates the database while orchestrators and workers run: jobs, callbacks and takeovers go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from geomill.domain.engine.job import Job
from geomill.domain.states import JobStatus
from geomill.engine.maintenance.callbacks import CallbackOptions
from geomill.store.pool import Pool
from geomill.store.signals import SCHEMA_CHANNEL, notify
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import EnginePlatform
from tests.integration.engine.test_takeover import STEPS
from tests.integration.maintenance.receiver import LOOPBACK, Receiver, receiver
from tests.integration.migrations import add_columns, widen_columns

__all__ = ["receiver"]

JOBS = 6


async def run_jobs(platform: EnginePlatform, url: str) -> set[str]:
    jobs = [await platform.submit("steps", callback_url=url) for _ in range(JOBS)]
    ended: list[Job] = [await platform.ended(job_id) for job_id in jobs]
    assert [job.status for job in ended] == [JobStatus.COMPLETED] * JOBS
    return set(jobs)


async def called(receiver: Receiver, jobs: set[str]) -> None:
    async with asyncio.timeout(20):
        while not jobs <= {json.loads(request.body)["job_id"] for request in receiver.requests}:
            receiver.arrived.clear()
            await receiver.arrived.wait()


@pytest.mark.parametrize("tell", [True, False])
@pytest.mark.parametrize("migrate", [add_columns, widen_columns])
async def test_jobs_callbacks_and_takeovers_go_on(
    make_platform: MakePlatform, receiver: Receiver, pool: Pool, migrate: Callable[[str], None], tell: bool
) -> None:
    platform = make_platform(STEPS)
    callbacks = CallbackOptions(allowed=LOOPBACK)
    first = platform.orchestrator(scan_seconds=0.2, callbacks=callbacks)
    platform.worker()
    await called(receiver, await run_jobs(platform, receiver.url))
    second = platform.orchestrator(scan_seconds=0.2, callbacks=callbacks)
    open_job = await platform.submit("steps")
    await asyncio.to_thread(migrate, platform.url)
    if tell:
        async with pool.connection() as conn:
            await notify(conn, [SCHEMA_CHANNEL])
    await called(receiver, await run_jobs(platform, receiver.url))
    assert (await platform.ended(open_job)).status is JobStatus.COMPLETED
    orphan = await platform.submit("steps", callback_url=receiver.url)
    owned = await platform.until(orphan, lambda job: job is not None and job.owner_id is not None)
    await platform.crash(first if owned.owner_id == first.instance_id else second)
    assert (await platform.ended(orphan)).status is JobStatus.COMPLETED
    await called(receiver, {orphan})
