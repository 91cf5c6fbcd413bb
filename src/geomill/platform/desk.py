"""The objects that submissions and decisions need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psycopg
from psycopg_pool import PoolTimeout

from geomill.catalogue.external import hide
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.platform import Platform
from geomill.domain.engine.starting import Starter, require_starter
from geomill.domain.engine.workflow import Workflow
from geomill.engine import control
from geomill.errors import ConflictError, Forbidden, NotFoundError
from geomill.platform.export import Exporter
from geomill.storage import Storage
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, queue_channel
from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)

FOR_EVERY_PLATFORM = "publish_file"
HIDE_SECONDS = 5.0
NOT_HIDDEN = "the external zone did not answer: the exported asset stays visible until the withdrawal has completed"


@dataclass(frozen=True, slots=True)
class SizeRoute:
    """The workflow for large rasters that name none."""

    workflow_id: str
    least_bytes: int


@dataclass(frozen=True)
class Desk:
    workflow_registry: WorkflowRegistry
    job_queue: str
    exporter: Exporter
    workflows: Mapping[DataType, str]
    """The default workflow of each data type."""
    storage: Storage
    outside: Pool | None = None
    """The external zone's database, if there is one."""
    large_rasters: SizeRoute | None = None

    def workflow_for(
        self, platform: Platform, data_type: DataType, requested: str | None, starter: Starter, size: int = 0
    ) -> Workflow:
        """Return the requested workflow, or the default one for data of this size, if this caller may start it."""
        workflow = self.workflow_registry.get(requested or self._default(platform, data_type, size))
        require_starter(workflow.workflow_id, workflow.started_by, starter)
        allowed = self.workflows_of(platform)
        if starter is Starter.PARTNERS and workflow.workflow_id not in allowed:
            raise Forbidden(
                f"the platform '{platform.platform_id}' may not start the workflow '{workflow.workflow_id}'",
                remedy=f"use one of {', '.join(allowed)}, or ask an administrator to add the workflow to the platform",
            )
        return workflow

    def workflows_of(self, platform: Platform) -> list[str]:
        """Return the workflows that partners of the platform may name."""
        if platform.workflows is not None:
            return sorted(platform.workflows)
        large = [self.large_rasters.workflow_id] if self.large_rasters else []
        return sorted({*self.workflows.values(), *large, FOR_EVERY_PLATFORM})

    def is_default(self, data_type: DataType, workflow_id: str) -> bool:
        """Whether data of this type may get the workflow without naming it."""
        large = self.large_rasters is not None and workflow_id == self.large_rasters.workflow_id
        return workflow_id == self.workflows[data_type] or (data_type is DataType.RASTER and large)

    def _default(self, platform: Platform, data_type: DataType, size: int) -> str:
        """Return the default workflow. A platform that may not start the one for large rasters keeps the usual one."""
        route = self.large_rasters
        large = route is not None and data_type is DataType.RASTER and size >= route.least_bytes
        if route and large and (platform.workflows is None or route.workflow_id in platform.workflows):
            return route.workflow_id
        return self.workflows[data_type]

    async def hide(self, asset_id: str) -> tuple[str, ...]:
        """Remove an asset from the external catalogue at once; a job deletes its files later. Returns warnings.

        An external zone that does not answer never blocks a decision.
        """
        if self.outside is None:
            return ()
        try:
            async with asyncio.timeout(HIDE_SECONDS):
                await hide(self.outside, asset_id)
        except (TimeoutError, PoolTimeout, psycopg.Error) as error:
            log.warning("not hidden: %r", error, extra={"action": "hide", "asset_id": asset_id})
            return (NOT_HIDDEN,)
        return ()

    async def announce(self, conn: Connection) -> None:
        """Wake orchestrators. Call this after the commit: a notification inside it would block other commits."""
        await notify(conn, [queue_channel(self.job_queue)])

    async def cancel(self, conn: Connection, job_ids: Iterable[str], reason: str) -> None:
        """Cancel jobs whose results no longer count, after the commit that made them obsolete. Failing to cancel is
        harmless."""
        for job_id in job_ids:
            try:
                await control.cancel(conn, self.job_queue, job_id, reason)
            except (ConflictError, NotFoundError) as error:
                log.info("nothing to cancel: %s", error, extra={"action": "cancel", "job_id": job_id})

    async def call_off(self, conn: Connection, job_id: str, reason: str) -> None:
        """Cancel a withdrawal that has not begun. A running one must finish, or it would delete files of the export
        that follows."""
        try:
            await control.cancel_waiting(conn, self.job_queue, job_id, reason)
        except NotFoundError as error:
            log.info("nothing to call off: %s", error, extra={"action": "call_off", "job_id": job_id})
