"""The figures in /metrics are those of all processes together."""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from geomill.api.figures import Figures
from geomill.store import tallies
from geomill.store.pool import Pool
from geomill.store.tallies import Tallies
from tests.integration.engine.conftest import MakePlatform


async def test_processes_add_up(pool: Pool) -> None:
    async def process(number: int) -> None:
        process_tallies = Tallies()
        for _ in range(10):
            process_tallies.count("retries", 2)
            process_tallies.observe("step_run_seconds", number)
            async with pool.connection() as conn:
                await process_tallies.tell(conn)

    await asyncio.gather(*map(process, (0, 1, 4000)))
    async with pool.connection() as conn:
        sums = {(tally.name, tally.bucket): tally.value for tally in await tallies.read(conn)}
    assert sums == {
        ("retries", 0.0): 60.0,
        ("step_run_seconds", -1.0): 40010.0,
        ("step_run_seconds", 0.002): 10.0,
        ("step_run_seconds", 1.0): 10.0,
        ("step_run_seconds", inf): 10.0,
    }


async def test_what_could_not_be_told_is_told_later(pool: Pool) -> None:
    process_tallies = Tallies()
    process_tallies.count("retries", 3)
    async with pool.connection() as conn:
        await conn.close()
        with pytest.raises(Exception, match="closed"):
            await process_tallies.tell(conn)
    async with pool.connection() as conn:
        await process_tallies.tell(conn)
        assert [tally.value for tally in await tallies.read(conn)] == [3.0]


async def test_roles_tell_what_they_did(
    make_platform: MakePlatform, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.store.tallies.EVERY_SECONDS", 0.0)
    platform = make_platform()
    platform.orchestrator(scan_seconds=0.05)
    platform.worker(check_seconds=0.05)
    await platform.run("retry_test")
    expected = {"geomill_retries_total", "geomill_transitions_total", "geomill_step_run_seconds_count"}
    async with asyncio.timeout(15):
        while True:
            text = (await Figures(pool).text()).decode()
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            if all(float(values.get(name, 0)) > 0 for name in expected):
                break
            await asyncio.sleep(0.1)
    assert float(values['geomill_step_wait_seconds_bucket{le="+Inf"}']) >= 2
