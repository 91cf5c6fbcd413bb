"""How a public asset gets outside, and out of there again.

An `Exporter` starts the work within the transaction of the decision, and answers with an id that the asset keeps as
its `adf_run_id`. Ours starts a job of a workflow; another may start a pipeline of a cloud.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from geomill.domain import naming
from geomill.domain.asset import Asset, DataType
from geomill.domain.job import JobPurpose
from geomill.domain.lifecycle import Actor, Outside
from geomill.domain.message import JobQueueMessage
from geomill.engine.submit import enqueue
from geomill.errors import AssetState
from geomill.store import assets
from geomill.store.pool import Connection
from geomill.workflows.catalogue import WorkflowCatalogue

EXPORT_WORKFLOW, WITHDRAW_WORKFLOW, DELETE_WORKFLOW = "export_asset", "withdraw_asset", "delete_asset_data"


MOST_REVISIONS = 10_000
_UNSAID = {"media_type": "application/octet-stream", "role": "data"}


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
    conn: Connection, catalogue: WorkflowCatalogue, job_queue: str, asset: Asset, actor: Actor, under_way: list[str]
) -> str:
    """Begin to delete what the revisions so far have made, once the jobs have ended that may still write to it."""
    logged = [one.outputs for one in await assets.revisions(conn, asset.asset_id, limit=MOST_REVISIONS)]
    containers = {file["container"] for outputs in (asset.outputs, *logged) for file in inventory(outputs)}
    more: dict[str, object] = {
        "table_stem": asset.table_stem if asset.data_type is DataType.VECTOR else None,
        "containers": sorted(containers),
        "previous_job_ids": _previous(asset) + under_way,
    }
    message = _message(asset, actor, DELETE_WORKFLOW, JobPurpose.DELETE, more)
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
            "previous_job_ids": _previous(asset),
            **more,
        },
        submitted_by=actor.name[:64],
        asset_id=asset.asset_id,
        asset_revision=asset.revision,
        purpose=purpose,
    )


def _previous(asset: Asset) -> list[str]:
    return [asset.adf_run_id] if asset.adf_run_id else []


def inventory(outputs: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The files that a revision is made of, as its job told them. What names no place is left out."""
    files = (outputs or {}).get("files")
    return [file for file in files if _placed(file)] if isinstance(files, list) else []


def _placed(file: Any) -> bool:
    return isinstance(file, dict) and all(isinstance(file.get(name), str) for name in ("container", "path"))


def _files(asset: Asset) -> list[dict[str, Any]]:
    """The inventory of the served revision, with the place of each file outside."""
    files = inventory(asset.outputs)
    if len(files) != len((asset.outputs or {}).get("files") or []):
        raise AssetState(
            f"the files of revision {asset.revision} of {asset.asset_id} cannot be exported: its workflow"
            f" '{asset.workflow_id}' does not say of each of them where it lies",
            remedy="let the workflow's output 'files' be a list of objects with zone, container, path, sha256 and size",
        )
    prefix = naming.blob_prefix(asset.blob_stem, asset.revision)
    return [{**_UNSAID, **file, "target": f"{prefix}/{_inside(file['path'])}"} for file in files]


def _inside(path: str) -> str:
    """Within the folder of its revision, which after a rollback is an older one."""
    return re.sub(r"^.*?/_r[0-9]+/", "", path)
