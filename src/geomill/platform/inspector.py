"""Runs inspections of files in child processes with limits of time, memory and number.

The files come from partners, so they may be built to exhaust a reader. A child has no database, no network if the
zones need none, and is killed when it takes too long or too much. Then the answer has only what is known without
reading the file. Each platform has one inspection at a time, so it cannot take the place of others.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from geomill.contract.inspection import Inspection, InspectionProblem, Severity
from geomill.domain.assets.asset import DataType
from geomill.domain.engine.message import TaskMessage
from geomill.domain.ids import new_id, task_id
from geomill.domain.objectname import ObjectName
from geomill.errors import TooManyRequests, UnavailableError
from geomill.inspection.task import NAME
from geomill.sdk.execution import Ended
from geomill.settings import InspectionSettings
from geomill.storage import Storage
from geomill.worker.children.limits import MEGABYTE
from geomill.worker.children.pool import IDLE_SECONDS, ChildPool, not_started
from geomill.worker.children.process import Child, ChildFailed, ChildSetup
from geomill.worker.children.surroundings import NO_WISHES, make_private, scratch_folder

log = logging.getLogger(__name__)

MODULE = "geomill.inspection.task"
TASKS_PER_CHILD = 50
MOST_WAITING = 20
WATCH_SECONDS = 0.1
FOLDER_PREFIX = "geomill-inspect-"


class Inspector:
    def __init__(self, storage: Storage, limits: InspectionSettings) -> None:
        self._storage, self._limits = storage, limits
        setup = ChildSetup((MODULE,), (NAME,), limits.inspect_memory_mb, storage.recipe)
        self._children = ChildPool(setup, ready=0, tasks_per_child=TASKS_PER_CHILD)
        self._slots = asyncio.Semaphore(limits.inspect_processes)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._children.close()

    async def inspect(
        self, platform_id: str, source: ObjectName, data_type: DataType | None, options: dict[str, Any]
    ) -> Inspection:
        """Look into a file. Raises `NotFoundError` if there is none, and `TooManyRequests` if too many callers wait."""
        size = (await self._storage.stat(source)).size
        async with self._turn(platform_id):
            ended = await self._look(source, data_type, options)
        if ended.success:
            return Inspection.model_validate_json(ended.text)
        problem = InspectionProblem(
            code=ended.error_code,
            severity=Severity.WARNING,
            field="file_name",
            message=f"'{source.path}' could not be inspected: {ended.error_message}; the job will check it",
        )
        return Inspection(
            file_name=source.path,
            container_name=source.container,
            size_bytes=size,
            data_type=data_type,
            complete=False,
            acceptable=True,
            problems=[problem],
        )

    @asynccontextmanager
    async def _turn(self, platform_id: str) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise TooManyRequests("too many files are being inspected", remedy="try again in a moment", retry_after=5.0)
        self._waiting += 1
        try:
            async with self._turns.setdefault(platform_id, asyncio.Lock()), self._slots:
                yield
        finally:
            self._waiting -= 1

    async def _look(self, source: ObjectName, data_type: DataType | None, options: dict[str, Any]) -> Ended:
        folder = await asyncio.to_thread(self._new_folder)
        job_id = new_id()
        message = TaskMessage(
            task_id=task_id(job_id, "inspect", -1, 1),
            job_id=job_id,
            node_id="inspect",
            handler=NAME,
            timeout_seconds=self._limits.inspect_seconds,
            attempt=1,
            params={
                "source": {"zone": source.zone, "container_name": source.container, "file_name": source.path},
                "folder": str(folder),
                "data_type": data_type,
                "options": options,
                "copied_bytes": self._limits.inspect_copy_mb * MEGABYTE,
            },
        )
        try:
            return await self._run(message)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            asyncio.get_running_loop().call_later(IDLE_SECONDS + 1, self._trim)

    def _new_folder(self) -> Path:
        parent = scratch_folder(self._storage.recipe, NO_WISHES)
        if parent is not None:
            make_private(parent)
        return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))

    async def _run(self, message: TaskMessage) -> Ended:
        try:
            child = await self._children.take()
        except ChildFailed as error:
            return not_started(error)
        limits = self._limits
        try:
            async with asyncio.timeout(limits.inspect_seconds):
                watch = asyncio.create_task(self._watch_memory(child))
                try:
                    ended = await self._children.run(child, message, None, _Deaf())
                finally:
                    watch.cancel()
        except TimeoutError:
            return Ended(
                False, error_code="too_slow", error_message=f"it took more than {limits.inspect_seconds:g} seconds"
            )
        if ended.error_code in ("crashed", "memory"):
            text = f"it needed more than {limits.inspect_memory_mb} MB of memory, or broke the reader"
            return Ended(False, error_code="too_heavy", error_message=text)
        return ended

    async def _watch_memory(self, child: Child) -> None:
        """Kill the child when it has too much memory. The kernel sends no event, so look again and again."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if child.memory() > self._limits.inspect_memory_mb * MEGABYTE:
                child.kill()
                return

    def _trim(self) -> None:
        self._children.trim(time.monotonic())


class _Deaf:
    """Ignores progress and checkpoints, and writes log lines of the child to this process's log."""

    def progress(self, fraction: float, message: str) -> None:
        pass

    def keep(self, phase: str, text: str) -> None:
        pass

    def limit(self, seconds: float | None, message: str) -> None:
        pass

    def line(self, level: int, text: str) -> None:
        log.log(level, "%s", text, extra={"action": "inspect"})

    async def page(self, node_id: str, after: int, having: str) -> str:
        raise UnavailableError(f"an inspection has no tasks: {node_id}, {after}, {having}")
