"""How a public asset gets outside, and out of there again.

An `Exporter` starts the work within the transaction of the decision, and answers with an id that the asset keeps as
its `adf_run_id`. Ours starts a job of a workflow; another may start a pipeline of a cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from geomill.domain import naming
from geomill.domain.asset import Asset
from geomill.domain.job import JobPurpose
from geomill.domain.lifecycle import Actor, Outside
from geomill.domain.message import JobQueueMessage
from geomill.engine.submit import enqueue
from geomill.store.pool import Connection
from geomill.workflows.catalogue import WorkflowCatalogue

EXPORT_WORKFLOW, WITHDRAW_WORKFLOW, DELETE_WORKFLOW = "export_asset", "withdraw_asset", "delete_asset_data"


class Exporter(Protocol):
    async def start(self, conn: Connection, asset: Asset, what: Outside, actor: Actor) -> str:
        """Begin to export or to withdraw the asset, within the caller's transaction. The id of the run."""
        ...


@dataclass(frozen=True)
class WorkflowExporter:
    catalogue: WorkflowCatalogue
    job_queue: str

    async def start(self, conn: Connection, asset: Asset, what: Outside, actor: Actor) -> str:
        if what is Outside.EXPORT:
            message = _message(asset, actor, EXPORT_WORKFLOW, JobPurpose.EXPORT, {"files": _files(asset)})
        else:
            message = _message(asset, actor, WITHDRAW_WORKFLOW, JobPurpose.WITHDRAW, {})
        await enqueue(conn, self.catalogue, self.job_queue, [message])
        return message.job_id


async def delete_data(
    conn: Connection, catalogue: WorkflowCatalogue, job_queue: str, asset: Asset, actor: Actor
) -> str:
    """Begin to delete what the revisions so far have made."""
    message = _message(asset, actor, DELETE_WORKFLOW, JobPurpose.DELETE, {"table_stem": asset.table_stem})
    await enqueue(conn, catalogue, job_queue, [message])
    return message.job_id


def _message(
    asset: Asset, actor: Actor, workflow_id: str, purpose: JobPurpose, more: dict[str, object]
) -> JobQueueMessage:
    return JobQueueMessage(
        workflow_id=workflow_id,
        input_params={
            "asset_id": asset.asset_id,
            "revision": asset.revision,
            "blob_stem": asset.blob_stem,
            "previous_job_id": asset.adf_run_id or "",
            **more,
        },
        submitted_by=actor.name[:64],
        asset_id=asset.asset_id,
        asset_revision=asset.revision,
        purpose=purpose,
    )


def _files(asset: Asset) -> list[object]:
    """The inventory of the served revision, with the place of each file outside."""
    files = (asset.outputs or {}).get("files", [])
    prefix = naming.blob_prefix(asset.blob_stem, asset.revision)
    return [{**file, "target": f"{prefix}/{file['path'].rsplit('/', 1)[-1]}"} for file in files]
