"""Runs a failed request again, as it was or with other processing options.

A request never changes. So other options make a new request, for the same revision: the order that failed stays on
record, and the number of the revision is not used up by a file that could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.domain.assets import naming
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.audit import AuditDecision
from geomill.domain.assets.lifecycle import Actor, require_seen
from geomill.domain.assets.request import NewRequest, PlatformRequest, RequestStatus
from geomill.domain.engine.starting import Starter
from geomill.domain.ids import new_id
from geomill.engine.submit import enqueue
from geomill.errors import AssetState
from geomill.platform.desk import Desk
from geomill.platform.submit import Accepted, job_message
from geomill.store import assets, requests
from geomill.store.pool import Connection, transaction_time


async def retry(
    conn: Connection,
    desk: Desk,
    identifier: str,
    actor: Actor,
    expected_revision: int | None = None,
    changed_options: Mapping[str, Any] | None = None,
) -> Accepted:
    """Run a failed request again, with a new job. `changed_options` replace those of the request; None removes one."""
    identified = await assets.identify(conn, identifier)
    async with conn.transaction():
        asset = await assets.lock(conn, identified.asset_id)
        if asset is None or identified.request_id is None or not asset.active:
            raise AssetState(f"'{identifier}' has no request that could be retried", remedy="submit it again")
        require_seen(asset, expected_revision)
        failed = await requests.lock(conn, identified.request_id)
        if failed.request_id != asset.last_request_id or failed.status is not RequestStatus.FAILED:
            raise AssetState(
                f"the request {failed.request_id} is {failed.status.value}", remedy="retry only a failed request"
            )
        again = _again(failed, actor, changed_options)
        workflow = desk.workflow_registry.get(failed.workflow_id)
        waiting = asset.evolve(last_request_id=again.request_id)
        message = job_message(again, workflow, waiting, actor, await transaction_time(conn))
        await enqueue(
            conn, desk.workflow_registry, desk.job_queue, [message], Starter.OPERATORS
        )  # checks the options; the request was authorised when it was accepted
        after = await _stored(conn, failed, again, asset)
        await assets.note(
            conn, AuditDecision.RETRIED, actor, waiting, asset, job_id=message.job_id, reason=_reason(changed_options)
        )
    await desk.announce(conn)
    return Accepted(after, await assets.get(conn, asset.asset_id), None, message)


def _again(failed: PlatformRequest, actor: Actor, changed_options: Mapping[str, Any] | None) -> NewRequest:
    """Return the request to run: the same one, or a new one with other options."""
    job_id, priority = new_id(), actor.retry_priority(failed.priority)
    if not changed_options:
        return failed.evolve(job_id=job_id, priority=priority)
    merged = {**failed.processing_options, **changed_options}
    fields = {name: getattr(failed, name) for name in NewRequest.model_fields}
    return NewRequest.model_validate(
        {
            **fields,
            "request_id": naming.request_id(failed.asset_id, new_id()),
            "processing_options": {name: value for name, value in merged.items() if value is not None},
            "submitted_by": actor.name,
            "on_behalf_of": actor.on_behalf_of,
            "idempotency_key": None,  # it belongs to the first request
            "job_id": job_id,
            "priority": priority,
        }
    )


async def _stored(conn: Connection, failed: PlatformRequest, again: NewRequest, asset: Asset) -> PlatformRequest:
    if again.request_id == failed.request_id:
        return await requests.retry(conn, failed.request_id, again.job_id)
    await assets.await_request(conn, asset.asset_id, again.request_id)
    return await requests.replace(conn, failed.request_id, again)


def _reason(changed_options: Mapping[str, Any] | None) -> str | None:
    return f"with other options: {', '.join(sorted(changed_options))}"[:2000] if changed_options else None
