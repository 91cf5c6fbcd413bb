"""Starts exports, withdrawals and deletions of assets.

An `Exporter` starts the work within the transaction of the decision and returns an id, which the asset stores as its
`adf_run_id`. `WorkflowExporter` starts a job, which copies the files itself or lets a pipeline of Data Factory copy
them. The job gets only the asset's id and reads from the asset's row what it may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from geomill.domain.assets import inventory
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.factory import FactoryPlace
from geomill.domain.assets.lifecycle import Actor, Outside
from geomill.domain.engine.job import JobPurpose
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.engine.submit import enqueue
from geomill.store import assets
from geomill.store.pool import Connection
from geomill.workflows.registry import WorkflowRegistry

EXPORT_WORKFLOW, WITHDRAW_WORKFLOW, DELETE_WORKFLOW = "export_asset", "withdraw_asset", "delete_asset_data"
EXPORT_BY_FACTORY, WITHDRAW_BY_FACTORY = "export_by_data_factory", "withdraw_by_data_factory"


class Exporter(Protocol):
    async def start(self, conn: Connection, asset: Asset, what: Outside, actor: Actor) -> str:
        """Start an export or a withdrawal of the asset within the caller's transaction. Returns the id of the run."""
        ...


@dataclass(frozen=True)
class WorkflowExporter:
    workflow_registry: WorkflowRegistry
    job_queue: str
    factory: FactoryPlace | None = None
    """The pipeline whose runs a withdrawal ends."""
    copies_by_factory: bool = False
    """Whether that pipeline copies the files of an export."""

    async def start(self, conn: Connection, asset: Asset, what: Outside, actor: Actor) -> str:
        if what is Outside.EXPORT:
            await _require_exportable(conn, asset)
        workflow_id, inputs = self._work(what)
        purpose = JobPurpose.EXPORT if what is Outside.EXPORT else JobPurpose.WITHDRAW
        message = _message(asset, actor, workflow_id, purpose, inputs=inputs)
        await enqueue(conn, self.workflow_registry, self.job_queue, [message], Starter.GEOMILL)
        return message.job_id

    def _work(self, what: Outside) -> tuple[str, dict[str, Any]]:
        """Return the workflow and the inputs that do not depend on the asset."""
        if what is Outside.EXPORT and not self.copies_by_factory:
            return EXPORT_WORKFLOW, {}
        if self.factory is None:
            return WITHDRAW_WORKFLOW, {}
        workflow_id = EXPORT_BY_FACTORY if what is Outside.EXPORT else WITHDRAW_BY_FACTORY
        return workflow_id, {"factory": self.factory.model_dump()}


async def delete_data(
    conn: Connection,
    workflow_registry: WorkflowRegistry,
    job_queue: str,
    asset: Asset,
    actor: Actor,
    under_way: list[str],
) -> str:
    """Start deleting the outputs of all revisions so far. The job first waits for the jobs `under_way`, which may still
    write."""
    message = _message(asset, actor, DELETE_WORKFLOW, JobPurpose.DELETE, under_way=under_way)
    await enqueue(conn, workflow_registry, job_queue, [message], Starter.GEOMILL)
    return message.job_id


def _message(
    asset: Asset,
    actor: Actor,
    workflow_id: str,
    purpose: JobPurpose,
    *,
    under_way: Sequence[str] = (),
    inputs: Mapping[str, Any] | None = None,
) -> JobQueueMessage:
    previous = [asset.adf_run_id] if asset.adf_run_id else []
    return JobQueueMessage(
        workflow_id=workflow_id,
        input_params={"asset_id": asset.asset_id, "previous_job_ids": [*previous, *under_way], **(inputs or {})},
        submitted_by=actor.name[:64],
        on_behalf_of=actor.on_behalf_of,
        asset_id=asset.asset_id,
        asset_revision=asset.public_revision if purpose is JobPurpose.EXPORT else asset.revision,
        purpose=purpose,
    )


async def _require_exportable(conn: Connection, asset: Asset) -> None:
    """Raise `AssetState` unless each file of the public revision has a place that belongs to the asset."""
    outputs = asset.outputs
    if asset.served_revision != asset.public_revision:
        logged = await assets.revision(conn, asset.asset_id, asset.public_revision or 0)
        outputs = logged.outputs if logged else None
    inventory.checked(outputs, asset.asset_id, asset.blob_stem)
