"""What the front desk works with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from geomill.domain.asset import DataType
from geomill.domain.workflow import Workflow
from geomill.engine import control
from geomill.errors import ConflictError, NotFoundError
from geomill.platform.export import Exporter
from geomill.storage import Storage
from geomill.store.pool import Connection
from geomill.store.signals import notify, queue_channel
from geomill.workflows.catalogue import WorkflowCatalogue

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Desk:
    catalogue: WorkflowCatalogue
    job_queue: str
    exporter: Exporter
    workflows: Mapping[DataType, str]
    """Which workflow processes a kind of data, unless the submitter says."""
    storage: Storage

    def workflow_for(self, data_type: DataType, wanted: str | None) -> Workflow:
        return self.catalogue.get(wanted or self.workflows[data_type])

    async def announce(self, conn: Connection) -> None:
        """After the commit: a notification inside it would hold up every other commit."""
        await notify(conn, [queue_channel(self.job_queue)])

    async def cancel(self, conn: Connection, job_ids: Iterable[str], reason: str) -> None:
        """Best effort, after the commit that made their results worthless: what ends meanwhile changes nothing."""
        for job_id in job_ids:
            try:
                await control.cancel(conn, self.job_queue, job_id, reason)
            except (ConflictError, NotFoundError) as error:
                log.info("nothing to cancel: %s", error, extra={"action": "cancel", "job_id": job_id})

    async def call_off(self, conn: Connection, job_id: str, reason: str) -> None:
        """Of a run that changes what is outside: only if it has not begun. One that has is let end, because what it is
        just writing would appear after the next one has looked."""
        try:
            await control.cancel_waiting(conn, self.job_queue, job_id, reason)
        except NotFoundError as error:
            log.info("nothing to call off: %s", error, extra={"action": "call_off", "job_id": job_id})
