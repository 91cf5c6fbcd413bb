"""Runs a pipeline once for an export, whatever happens to the process that asks for it.

Before a run is started, a note is written to the store; of several processes one can write it. Whoever finds a note
looks among the runs until the run appears, and only after `LAG_SECONDS` without one starts another. If two runs were
started all the same, the earlier one counts and the others are cancelled. All write the same files to the same place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from geomill.datafactory.client import FactoryClient
from geomill.datafactory.run import EXPORT_ID, PipelineRun
from geomill.errors import DataFactoryRefused, DataFactoryUnavailable, IdentityUnavailable

log = logging.getLogger(__name__)

LAG_SECONDS = 30.0
"""How long a new run may be missing from the list of runs."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0
CHECK_SECONDS = 1.0
SILENCE_SECONDS = 900.0
"""How long Data Factory may be away while a run is watched."""
FirstHere = Callable[[], Awaitable[bool]]
"""Leaves the note. Returns whether there was none yet."""


async def run_for(factory: FactoryClient, export_id: str, parameters: dict[str, Any], first_here: FirstHere) -> str:
    """Return the id of the run that copies, or has copied, the files of this export. Starts it if there is none."""
    patience = 0.0 if await first_here() else LAG_SECONDS
    if run := await _useful(factory, export_id, patience):
        return run.run_id
    return await factory.start({EXPORT_ID: export_id, **parameters})


async def _useful(factory: FactoryClient, export_id: str, patience: float) -> PipelineRun | None:
    """Look for a useful run of the export, again and again while it may be missing. Cancel all but the earliest."""
    deadline = time.monotonic() + patience
    while True:
        useful = [run for run in await factory.runs(export_id) if run.useful]
        for surplus in useful[1:]:
            log.warning("the run %s does what %s does, and is cancelled", surplus.run_id, useful[0].run_id)
            await _cancel(factory, surplus)
        if useful or time.monotonic() >= deadline:
            return useful[0] if useful else None
        await asyncio.sleep(FIRST_PAUSE)


async def ended(
    factory: FactoryClient,
    run_id: str,
    look: Callable[[PipelineRun], None],
    check: Callable[[], Awaitable[None]],
) -> PipelineRun:
    """Watch a run until it has ended. `look` gets each answer. What `check` raises, once a second, ends the watch."""
    pause, silent_since = FIRST_PAUSE, time.monotonic()
    while True:
        try:
            run = await factory.run(run_id)
        except (DataFactoryUnavailable, IdentityUnavailable):
            if time.monotonic() - silent_since > SILENCE_SECONDS:
                raise
        else:
            silent_since = time.monotonic()
            look(run)
            if run.ended:
                return run
        until = time.monotonic() + pause
        while time.monotonic() < until:
            await check()
            await asyncio.sleep(min(CHECK_SECONDS, pause))
        pause = min(pause * 1.5, LONGEST_PAUSE)


async def stop(
    factory: FactoryClient, job_ids: list[str], *, thoroughly: bool, check: Callable[[], None]
) -> tuple[int, int]:
    """Cancel the runs of these jobs. Returns how many there are, and how many of them have not ended yet.

    A run that was started a moment ago may be missing from the list. `thoroughly` looks again until it would be
    there. `check` is called before each look, and what it raises ends the wait."""
    deadline = time.monotonic() + (LAG_SECONDS if thoroughly else 0.0)
    while True:
        check()
        runs = await factory.runs_of_jobs(job_ids)
        live = [run for run in runs if not run.ended]
        for run in live:
            await _cancel(factory, run)
        if live or time.monotonic() >= deadline:
            return len(runs), len(live)
        await asyncio.sleep(FIRST_PAUSE)


async def _cancel(factory: FactoryClient, run: PipelineRun) -> None:
    if run.ended:
        return
    try:
        await factory.cancel(run.run_id)
    except DataFactoryRefused as error:  # it has ended meanwhile; whoever waits for that looks again
        log.info("the run %s was not cancelled: %s", run.run_id, error)
