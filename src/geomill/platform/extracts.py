"""Takes orders of extracts: one transaction checks the limits, writes the extract and submits its job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geomill.domain.access.principal import Principal
from geomill.domain.assets.extract import (
    NewExtract,
    new_extract_id,
    plain_name,
    without_credentials,
)
from geomill.domain.assets.served import Served
from geomill.domain.engine.job import NORMAL_PRIORITY
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.domain.ids import new_id
from geomill.engine.submit import enqueue
from geomill.errors import TooManyRequests
from geomill.settings import ExtractSettings
from geomill.store import extracts
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, queue_channel
from geomill.workflows.registry import WorkflowRegistry

WORKFLOW = "write_extract"
TENANT = "extracts"
"""Takes turns with the platforms, so that extracts do not hold up their work."""
RETRY_AFTER_SECONDS = 600
ANONYMOUS = "anonymous"
"""All callers without a credential count as one."""


@dataclass(frozen=True, slots=True)
class ExtractFile:
    """The file that a caller orders."""

    name: str
    media_type: str
    work: dict[str, Any]


@dataclass(frozen=True)
class ExtractOffice:
    """Takes orders. A process without one cannot submit jobs."""

    workflow_registry: WorkflowRegistry
    job_queue: str
    limits: ExtractSettings

    async def order(self, pool: Pool, served: Served, file: ExtractFile, principal: Principal | None) -> str:
        """Order an extract of a revision that the caller sees. Returns its id. An order that repeats one of the same
        caller returns that one."""
        extract = self._extract(served, file, principal)
        async with pool.connection() as conn:
            async with conn.transaction():
                await extracts.serialise(conn)
                if earlier := await extracts.same(conn, extract):
                    return earlier
                await self._require_room(conn, extract.ordered_by)
                await extracts.create(conn, extract, self.limits.keep_extracts_hours * 3600)
                message = _message(extract, principal)
                await enqueue(conn, self.workflow_registry, self.job_queue, [message], Starter.GEOMILL)
            await notify(conn, [queue_channel(self.job_queue)])
        return extract.extract_id

    def _extract(self, served: Served, file: ExtractFile, principal: Principal | None) -> NewExtract:
        return NewExtract(
            extract_id=new_extract_id(),
            asset_id=served.asset_id,
            revision=served.revision,
            withdrawn_through=served.withdrawn_through,
            ordered_by=caller_of(principal),
            file_name=plain_name(file.name),
            media_type=file.media_type,
            work=without_credentials(file.work),
            most_bytes=self.limits.extract_max_bytes,
            job_id=new_id(),
        )

    async def _require_room(self, conn: Connection, caller: str) -> None:
        figures = await extracts.figures(conn, caller)
        anonymous = caller == ANONYMOUS
        most = self.limits.extract_anonymous_most if anonymous else self.limits.extract_most
        if figures.extracts >= most:
            raise TooManyRequests(
                f"{'callers without a credential' if anonymous else 'you'} have {figures.extracts} extracts,"
                f" and at most {most} are allowed",
                remedy="sign in, or try again later" if anonymous else "wait until one of them is deleted",
                retry_after=RETRY_AFTER_SECONDS,
            )
        if figures.bytes + self.limits.extract_max_bytes > self.limits.extract_total_bytes:
            raise TooManyRequests(
                "the extracts of all callers take the room that there is for them",
                remedy="try again later, or narrow the download until it needs no extract",
                retry_after=RETRY_AFTER_SECONDS,
            )


def _message(extract: NewExtract, principal: Principal | None) -> JobQueueMessage:
    """Return the job. Those of callers without a credential wait for all other work."""
    return JobQueueMessage(
        job_id=extract.job_id,
        workflow_id=WORKFLOW,
        input_params={"extract_id": extract.extract_id},
        submitted_by=principal.subject if principal else None,
        tenant=(principal and principal.platform_id) or TENANT,
        priority=NORMAL_PRIORITY if principal else NORMAL_PRIORITY - 1,
    )


def caller_of(principal: Principal | None) -> str:
    """Return the name under which a caller's extracts are counted: keys of one platform count together."""
    if principal is None:
        return ANONYMOUS
    return f"platform {principal.platform_id}" if principal.platform_id else f"caller {principal.subject}"[:200]
