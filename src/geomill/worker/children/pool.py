"""The children of a worker. Some are kept ready, and a broken one is replaced in the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

from geomill.domain.access.confidential import new_reference
from geomill.domain.engine.message import TaskMessage
from geomill.sdk.execution import Ended, failed
from geomill.sdk.registry import Registry
from geomill.storage import StorageRecipe
from geomill.store.checkpoints import Saved
from geomill.worker.children.limits import MEGABYTE
from geomill.worker.children.process import START_SECONDS, Child, ChildFailed, ChildSetup, Ear
from geomill.worker.children.surroundings import NO_WISHES, Wishes

log = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
"""How long a child without work lives, unless it is one of those that are kept ready."""


class ChildPool:
    """Has as many children as there are tasks. `ready` of them are kept, and at most that many start at once."""

    def __init__(self, setup: ChildSetup, *, ready: int, tasks_per_child: int) -> None:
        self._setup = setup
        self._ready = ready if setup.names else 0
        self._tasks_per_child = tasks_per_child
        self._all: set[Child] = set()
        self._idle: list[Child] = []
        self._starting = 0
        self._gate = asyncio.Semaphore(max(ready, 1))
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False
        self._warned_exposed = False

    @classmethod
    def of(
        cls,
        handlers: Registry,
        *,
        ready: int,
        tasks_per_child: int,
        memory_mb: int | None,
        storage: StorageRecipe,
        database: str = "",
        wishes: Wishes = NO_WISHES,
    ) -> ChildPool:
        isolated = {name: handler for name, handler in handlers.items() if handler.isolated}
        modules = dict.fromkeys(handler.function.__module__ for handler in isolated.values())
        setup = ChildSetup(tuple(modules), tuple(isolated), memory_mb, storage, database, wishes)
        return cls(setup, ready=ready, tasks_per_child=tasks_per_child)

    @property
    def memory_limit(self) -> int | None:
        """The memory limit of a child in bytes."""
        return self._setup.memory_mb * MEGABYTE if self._setup.memory_mb else None

    @property
    def pids(self) -> set[int]:
        return {child.pid for child in self._all}

    def open(self) -> None:
        self._fill()

    async def take(self) -> Child:
        """Return a child that is ready, or a new one. Raises `ChildFailed` if it does not start."""
        if child := self._pop():
            return child
        async with self._gate:
            return self._pop() or await self._start()

    def give_back(self, child: Child, ended: Ended | None) -> None:
        """Take a child back. It is used again only if its task succeeded and it is still fit."""
        if ended and ended.success and self._is_fit(child):
            child.idle_since = time.monotonic()
            self._idle.append(child)
        else:
            self._retire(child)
            self._fill()

    async def run(self, child: Child, message: TaskMessage, checkpoint: Saved | None, ear: Ear) -> Ended:
        ended: Ended | None = None
        try:
            ended = await child.run(message, checkpoint, ear)
        finally:
            self.give_back(child, ended)
        return ended

    def trim(self, now: float) -> None:
        """End surplus children that have had no work for long, the oldest first."""
        surplus = len(self._idle) - self._ready
        for child in [child for child in self._idle if now - child.idle_since > IDLE_SECONDS][: max(surplus, 0)]:
            self._idle.remove(child)
            self._retire(child)

    async def close(self) -> None:
        self._closed = True
        for task in [task for task in self._background if task.get_name() == "start"]:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.gather(*(child.stop() for child in list(self._all)))
        self._all.clear()
        self._idle.clear()

    def _is_fit(self, child: Child) -> bool:
        limit = self.memory_limit
        worn = child.tasks >= self._tasks_per_child or (limit is not None and child.memory() > limit / 2)
        return child.alive and not worn and not self._closed

    def _pop(self) -> Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._retire(child)
        return None

    async def _start(self) -> Child:
        try:
            child = await Child.start(self._setup)
        except TimeoutError as error:
            raise ChildFailed(f"the handler's process was not ready after {START_SECONDS:g} s") from error
        if child.exposed and not self._warned_exposed:
            self._warned_exposed = True
            log.warning("this system allows no network namespace: handler processes can reach the network")
        self._all.add(child)
        return child

    def _fill(self) -> None:
        """Start missing children. If one cannot start, the next try is when a task needs a child."""
        while not self._closed and len(self._all) + self._starting < self._ready:
            self._starting += 1
            self._spawn("start", self._start_ahead())

    async def _start_ahead(self) -> None:
        try:
            async with self._gate:
                child = await self._start()
                child.idle_since = time.monotonic()
                self._idle.append(child)
        except ChildFailed as error:
            log.error("%s", error)  # noqa: TRY400  the message comes from the child
        finally:
            self._starting -= 1

    def _retire(self, child: Child) -> None:
        self._all.discard(child)
        self._spawn("stop", child.stop())

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def not_started(error: ChildFailed) -> Ended:
    reference = new_reference()
    log.error("%s, reference %s", error, reference)
    text = f"the handler's process did not start: see the log for the reference {reference}"
    return failed(text, "crashed", retryable=True)
