"""Tests of handlers: runs a handler as a worker would, without a worker.

from geomill.sdk.testing import run_handler

def test_mine():
    run = run_handler(my_handler, {"path": "a.tif"})
    assert run.success
    assert run.output["bands"] == 3

A handler that uses the storage gets zones in a folder:

from geomill.sdk.testing import folder_storage

def test_mine(tmp_path):
    storage = folder_storage(tmp_path)
    storage.sync.put_bytes(ObjectName(Zone.BRONZE, "rasters", "a.tif"), data)
    run = run_handler(my_handler, {"path": "a.tif"}, storage=storage)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geomill.domain.ids import task_id
from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.database import DatabaseAccess
from geomill.sdk.execution import Ended, execute
from geomill.sdk.registration import MARK, RegisteredHandler
from geomill.storage import NO_STORAGE, Storage, StorageRecipe


@dataclass
class HandlerRun:
    """The result of a handler, its progress and its checkpoints."""

    ended: Ended
    progress: list[tuple[float, str]] = field(default_factory=list)
    checkpoints: list[SavedCheckpoint] = field(default_factory=list)

    @property
    def success(self) -> bool:
        return self.ended.success

    @property
    def output(self) -> Any:
        return self.ended.output

    @property
    def error(self) -> str:
        return self.ended.error_message


@dataclass
class _Recorder:
    reported: list[tuple[float, str]] = field(default_factory=list)
    saved: list[SavedCheckpoint] = field(default_factory=list)

    def progress(self, fraction: float, message: str) -> None:
        self.reported.append((fraction, message))

    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None:
        self.saved.append(SavedCheckpoint(phase, data))

    def limit(self, seconds: float | None, message: str) -> None:
        """Time limits are not enforced in tests."""


def folder_storage(folder: Path) -> Storage:
    """Return a storage with all zones as folders in this one, independent of the environment."""
    return Storage(StorageRecipe.in_folder(folder))


def run_handler(
    function: Callable[..., Any],
    params: Mapping[str, Any] | None = None,
    *,
    checkpoint: SavedCheckpoint | None = None,
    attempt: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    storage: Storage = NO_STORAGE,
    pool: Any = None,
    database_url: str = "",
    job_id: str = "test-job",
    item_index: int = -1,
) -> HandlerRun:
    """Run a registered handler to its end. Works inside and outside a running event loop."""
    handler: RegisteredHandler = getattr(function, MARK)
    recorder = _Recorder()

    def make_context(typed: Any) -> HandlerContext[Any]:
        return HandlerContext(
            task_id=task_id(job_id, "node", item_index, attempt),
            job_id=job_id,
            node_id="node",
            handler=handler.info.name,
            params=typed,
            logger=logging.getLogger(f"geomill.handler.{handler.info.name}"),
            reporter=recorder,
            item_index=item_index,
            attempt=attempt,
            attempt_id=task_id(job_id, "node", item_index, attempt),
            retry_count=attempt - 1,
            checkpoint=checkpoint,
            is_cancelled=cancelled,
            storage=storage,
            pool=pool,
            database=DatabaseAccess(database_url),
        )

    with ThreadPoolExecutor(max_workers=1) as thread:
        ended = thread.submit(lambda: asyncio.run(execute(handler, params or {}, make_context))).result()
    return HandlerRun(ended, recorder.reported, recorder.saved)
