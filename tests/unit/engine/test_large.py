"""Large outputs of owned jobs, read beside the rounds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from geomill.domain.engine.decision import Outcome
from geomill.domain.engine.large import LargeOutput
from geomill.domain.engine.task import TaskReport
from geomill.engine.large import LargeOutputs
from geomill.storage import Storage, StorageRecipe
from geomill.store.inbox import Arrival

NOW = datetime(2026, 11, 18, tzinfo=UTC)


class OutputReading:
    """Large outputs in a folder, and the event that something has arrived."""

    def __init__(self, folder: Path) -> None:
        self.arrived = asyncio.Event()
        self.storage = Storage(StorageRecipe.in_folder(folder))
        self.large = LargeOutputs(self.storage, self.arrived.set)

    async def stored(self, job_id: str, content: bytes) -> Arrival:
        """A report whose output is in the store."""
        reference = LargeOutput.of(job_id, "work", 1, content)
        await self.storage.put_bytes(reference.name, content)
        outcome = Outcome("work", 1, TaskReport.COMPLETED, output=reference.output())
        return Arrival(7, job_id, None, None, NOW, [outcome])

    async def read(self, arrival: Arrival) -> Arrival:
        assert self.large.ready([arrival]) == [], "its output is read first"
        async with asyncio.timeout(5):
            await self.arrived.wait()
        (filled,) = self.large.ready([arrival])
        return filled


@pytest.fixture
async def reading(tmp_path: Path) -> OutputReading:
    reading = OutputReading(tmp_path)
    await reading.storage.prepare()
    return reading


async def test_a_report_waits_for_its_output(reading: OutputReading) -> None:
    arrival = await reading.stored("job", b'{"rows": 3}')
    filled = await reading.read(arrival)
    assert filled.outcomes[0].output == {"rows": 3}
    assert filled.stored == arrival.outcomes[0].output


async def test_an_output_that_cannot_be_read_fails_its_task(reading: OutputReading) -> None:
    """A report that waited for ever would hold up its job for ever."""
    filled = await reading.read(await reading.stored("job", b"no JSON"))
    assert (filled.outcomes[0].report, filled.outcomes[0].error_code) == (TaskReport.FAILED, "lost_output")
    assert "reference" in filled.outcomes[0].error


async def test_a_changed_output_fails_its_task_with_the_reason(reading: OutputReading) -> None:
    arrival = await reading.stored("job", b"{}")
    reference = LargeOutput.model_validate(arrival.outcomes[0].output["large_output"])
    await reading.storage.put_bytes(reference.name, b"[]")
    filled = await reading.read(arrival)
    assert filled.outcomes[0].report is TaskReport.FAILED
    assert "was changed after it was stored" in filled.outcomes[0].error


async def test_outputs_of_a_lost_job_are_forgotten(reading: OutputReading) -> None:
    kept_job, lost_job = await reading.stored("kept", b"[1]"), await reading.stored("lost", b"[2]")
    reading.large.ready([kept_job, lost_job])
    await asyncio.gather(*reading.large._coming.values())
    reading.large.forget({"lost"})
    (filled,) = reading.large.ready([kept_job])
    assert filled.outcomes[0].output == [1]
    assert not reading.large._here
