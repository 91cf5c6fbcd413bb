"""Runs the handler of a slot, here or in a child, and returns how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import psycopg

from geomill.errors import UnavailableError
from geomill.sdk.code_version import code_versions
from geomill.sdk.context import ExternalCatalogue, HandlerContext
from geomill.sdk.execution import Ended, execute, failed
from geomill.sdk.registration import RegisteredHandler
from geomill.sdk.registry import Registry
from geomill.storage import Storage
from geomill.store import jobs, nodes, reports
from geomill.store.orders import Orders
from geomill.store.pool import Pool
from geomill.worker.children.pool import ChildPool, not_started
from geomill.worker.children.process import ChildFailed
from geomill.worker.context import make_context, services
from geomill.worker.repertoire import Repertoire
from geomill.worker.slots import Slot
from geomill.worker.tasklog import TaskLogger, clean

handler_log = logging.getLogger("geomill.handler")


class Runner:
    def __init__(
        self,
        handlers: Registry,
        repertoire: Repertoire,
        children: ChildPool,
        storage: Storage,
        pool: Pool,
        external: ExternalCatalogue | None = None,
    ) -> None:
        self._handlers = dict(handlers)
        self._repertoire = repertoire
        self._versions = code_versions(handlers)
        self._children = children
        self._pool = pool
        self._services = services(
            storage=storage,
            pool=pool,
            job_ended=self._job_ended,
            asset_report=self._asset_report,
            orders=Orders(pool),
            external=external,
        )

    async def run(self, slot: Slot) -> Ended | None:
        """Run a task. Returns None if the attempt was forced to end without a result. A cancellation from elsewhere is
        raised again."""
        try:
            return await self._attempt(slot)
        except asyncio.CancelledError:
            if slot.forced_at is not None:
                return slot.verdict
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            return failed("the handler cancelled itself", "handler_error", retryable=True)

    def _attempt(self, slot: Slot) -> Awaitable[Ended]:
        name = slot.message.handler
        handler = self._handlers.get(name)
        if handler is None:
            return _at_once(self._repertoire.failure(slot))
        if handler.isolated:
            return self._isolated(slot)
        slot.begin(self._versions[name])
        return execute(handler, slot.message.handler_params, partial(self._context, slot, handler))

    def _context(self, slot: Slot, handler: RegisteredHandler, params: Any) -> HandlerContext[Any]:
        logger = TaskLogger(handler_log, slot.notes.line, _ids(slot))
        task_services = self._services
        if not handler.is_async:
            pages = partial(self._page_for_thread, asyncio.get_running_loop(), slot.message.job_id)
            task_services = {**task_services, "outcome_pages": pages}
        return make_context(
            slot.message, slot.checkpoint, params, logger, slot.notes, lambda: slot.cancelled, task_services
        )

    async def _job_ended(self, job_id: str) -> bool:
        async with self._pool.connection() as conn:
            return await jobs.ended(conn, job_id)

    async def _asset_report(self, report: str, seconds: float) -> list[dict[str, Any]]:
        async with self._pool.connection() as conn:
            return await reports.read(conn, reports.ReportName(report), seconds=seconds)

    def _page_for_thread(
        self, loop: asyncio.AbstractEventLoop, job_id: str, node_id: str, after: int, having: str
    ) -> str:
        """Read a page, called from the thread of a handler that is not async."""
        return asyncio.run_coroutine_threadsafe(self._page(job_id, node_id, after, having), loop).result()

    async def _page(self, job_id: str, node_id: str, after: int, having: str) -> str:
        try:
            async with self._pool.connection() as conn:
                return await nodes.outcomes_page(conn, job_id, node_id, after, having)
        except psycopg.Error as error:
            handler_log.warning("the outcomes of the tasks of '%s' cannot be read: %s", node_id, error)
            raise UnavailableError(f"the outcomes of the tasks of '{node_id}' cannot be read now") from error

    async def _isolated(self, slot: Slot) -> Ended:
        try:
            child = await self._children.take()
        except ChildFailed as error:
            return not_started(error)
        slot.begin(child.versions.get(slot.message.handler), child)
        try:
            return await self._children.run(child, slot.message, slot.checkpoint, _Echo(slot, self._page))
        finally:
            slot.child = None


class _Echo:
    """Writes what a child sends into the notes, and its log lines also into this process's log."""

    def __init__(self, slot: Slot, read: Callable[[str, str, int, str], Awaitable[str]]) -> None:
        self._ids = _ids(slot)
        self._job_id = slot.message.job_id
        self._read = read
        self.progress = slot.notes.progress
        self.keep = slot.notes.keep
        self.limit = slot.notes.limit
        self._line = slot.notes.line

    async def page(self, node_id: str, after: int, having: str) -> str:
        return await self._read(self._job_id, node_id, after, having)

    def line(self, level: int, text: str) -> None:
        handler_log.log(level, "%s", clean(text), extra=self._ids)
        self._line(level, text)


async def _at_once(ended: Ended) -> Ended:
    return ended


def _ids(slot: Slot) -> dict[str, object]:
    message = slot.message
    return {"job_id": message.job_id, "node_id": message.node_id, "task_id": message.task_id}
