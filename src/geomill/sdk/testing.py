"""For handler authors: run a handler as a worker would, without a worker.

from geomill.sdk.testing import run_handler

def test_mine():
    run = run_handler(my_handler, {"path": "a.tif"})
    assert run.success
    assert run.output["bands"] == 3
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from geomill.domain.ids import task_id
from geomill.sdk.context import HandlerContext, SavedCheckpoint
from geomill.sdk.execution import Ended, execute
from geomill.sdk.registration import MARK, RegisteredHandler


@dataclass
class HandlerRun:
    """What the handler returned and what it said on the way."""

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
    seen: list[tuple[float, str]] = field(default_factory=list)
    saved: list[SavedCheckpoint] = field(default_factory=list)

    def progress(self, fraction: float, message: str) -> None:
        self.seen.append((fraction, message))

    def checkpoint(self, phase: str, data: Mapping[str, Any]) -> None:
        self.saved.append(SavedCheckpoint(phase, data))


def run_handler(
    function: Callable[..., Any],
    params: Mapping[str, Any] | None = None,
    *,
    checkpoint: SavedCheckpoint | None = None,
    attempt: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    storage: Any = None,
    pool: Any = None,
) -> HandlerRun:
    """Run a registered handler to its end. Works inside and outside of a running event loop."""
    handler: RegisteredHandler = getattr(function, MARK)
    recorder = _Recorder()

    def make_context(typed: Any) -> HandlerContext[Any]:
        return HandlerContext(
            task_id=task_id("test-job", "node", -1, attempt),
            job_id="test-job",
            node_id="node",
            handler=handler.info.name,
            params=typed,
            logger=logging.getLogger(f"geomill.handler.{handler.info.name}"),
            reporter=recorder,
            attempt=attempt,
            retry_count=attempt - 1,
            checkpoint=checkpoint,
            is_cancelled=cancelled,
            storage=storage,
            pool=pool,
        )

    with ThreadPoolExecutor(max_workers=1) as thread:
        ended = thread.submit(lambda: asyncio.run(execute(handler, params or {}, make_context))).result()
    return HandlerRun(ended, recorder.seen, recorder.saved)
